"""The HTML report in a real browser: what a person sees and does, and what hostile words do not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser
from saved import RICH, TURNS, attempt, run, saved, task

from pytest_caliper.reporting.html import write_html, write_html_comparison
from pytest_caliper.runs.records import ChangedFile, Run

REASON = "expect: the message has no type, so release notes cannot be made from it"


def written(run_file: Path, *others: Path) -> Path:
    page = run_file.with_suffix(".html")
    with open(page, "w", encoding="ascii") as out:
        if others:
            write_html_comparison(run_file, *others, out)
        else:
            write_html(run_file, out)
    return page


@pytest.fixture(scope="session")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(saved(RICH, tmp_path_factory.mktemp("rich")))


def quiet(browser: Browser) -> None:
    """Nothing was logged, nothing was asked of any network."""
    assert browser.console == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in browser.requests if url.startswith("file:")]) == 1


def detail(browser: Browser) -> str:
    browser.wait("document.querySelector('#detail .numbers') !== null")
    return str(browser.run("document.querySelector('#detail').innerText"))


def focused(browser: Browser) -> str:
    return str(
        browser.run("document.activeElement.getAttribute('href') || document.activeElement.id || document.activeElement.tagName")
    )


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fragment", ["", "task-001/attempt-2"])
def test_it_is_drawn(browser: Browser, rich: Path, tmp_path: Path, width: int, scheme: str, fragment: str) -> None:
    browser.size(width, 900)
    browser.prefers(scheme)
    browser.open(rich, fragment)
    if fragment:
        assert REASON in detail(browser)
    assert browser.run("document.documentElement.scrollWidth") == width
    assert browser.run("document.querySelector('#detail').scrollWidth <= document.querySelector('#detail').clientWidth")
    quiet(browser)
    seen_width, seen_height, seen = browser.colours(browser.screenshot(tmp_path / "page.png"))
    assert (seen_width, seen_height) == (width, 900)
    background, failed = {"light": ("#ffffff", "#c62d36"), "dark": ("#0f1216", "#b4343a")}[scheme]
    assert background in seen
    assert failed in seen or (width == 400 and not fragment)  # below what a phone shows first
    assert len(seen) > 20


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_cut_off_or_on_top_of_something_else(browser: Browser, rich: Path, width: int) -> None:
    browser.size(width, 900)
    browser.open(rich)
    cut = """[...document.querySelectorAll('td, th, dd, dt, p, li, button, h1, h2, summary')].filter((one) => {
        const box = one.getBoundingClientRect();
        return !one.closest('.unseen') && one.offsetParent && (box.right > innerWidth + 1 || one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflow !== 'visible');
    }).map((one) => one.outerHTML.slice(0, 100))"""
    assert browser.run(cut) == []
    overlaps = """(() => {
        const boxes = [...document.querySelectorAll('.tasks .line > *')].filter((one) => one.offsetParent && one.textContent.trim());
        const rects = boxes.map((one) => one.getBoundingClientRect());
        return boxes.filter((one, i) => rects.some((other, j) => j !== i && rects[i].left < other.right - 1 && other.left < rects[i].right - 1
            && rects[i].top < other.bottom - 1 && other.top < rects[i].bottom - 1)).map((one) => one.outerHTML.slice(0, 100));
    })()"""
    assert browser.run(overlaps) == []


def test_keys_lead_from_the_page_to_why_an_attempt_failed(browser: Browser, rich: Path) -> None:
    browser.open(rich)
    browser.press("f", "j")
    assert focused(browser) == "#task-001/attempt-2"
    browser.press("Enter")
    told = detail(browser)
    assert told.index(REASON) < told.index("The subject line is") < told.index("PORT = 8080") < told.index("Transcript")
    assert "Attempt 2 (skill) failed" in told
    assert "votes: no, yes, no" in told
    assert browser.run("location.hash") == "#task-001/attempt-2"
    assert focused(browser) == "detail-title"
    browser.press("j")
    browser.wait("location.hash === '#task-001/attempt-4'")  # the next failure, not the next attempt
    browser.press("k")
    browser.wait("location.hash === '#task-001/attempt-2'")
    browser.press("j", "j", "j", "k", "k")
    browser.wait("location.hash === '#task-001/attempt-4'")
    browser.press("k")
    browser.press("Escape")
    assert browser.run("document.querySelector('#detail').hidden")
    assert focused(browser) == "#task-001/attempt-2"
    quiet(browser)


def test_arrows_move_between_attempts_and_tasks(browser: Browser, rich: Path) -> None:
    browser.open(rich)
    browser.press("j", "ArrowRight", "ArrowRight")
    assert focused(browser) == "#task-001/attempt-3"
    browser.press("ArrowDown")
    assert focused(browser) == "#task-001/baseline-3"
    browser.press("ArrowDown", "ArrowLeft")
    assert focused(browser) == "#task-002/attempt-2"
    browser.press("ArrowUp", "ArrowUp", "ArrowUp")
    assert focused(browser) == "#task-001/attempt-2"
    assert browser.run("document.querySelectorAll('#tasks a.attempt[tabindex=\"0\"]').length") == 1
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_tab_reaches_everything_in_order(browser: Browser, rich: Path) -> None:
    browser.open(rich)
    order = []
    for _ in range(8):
        browser.press("Tab")
        order.append(
            browser.run("document.activeElement.id || document.activeElement.dataset.filter || document.activeElement.tagName")
        )
    assert order == ["theme", "search", "all", "failures", "cheat", "unusable", "task-001/attempt-1", "A"]


def test_filters_and_search_leave_what_was_asked_for(browser: Browser, rich: Path) -> None:
    shown = (
        "[...document.querySelectorAll('.task')].filter((one) => !one.hidden).map((one) => one.querySelector('.id').textContent)"
    )
    bright = "document.querySelectorAll('#tasks a.attempt:not(.dim)').length"
    browser.open(rich)
    assert browser.run(shown) == ["task-001", "task-002", "task-003", "task-004"]
    browser.click('[data-filter="failures"]')
    assert browser.run(shown) == ["task-001", "task-003", "task-004"]
    assert browser.run(bright) == 8
    assert browser.run("document.querySelector('[data-filter=failures]').getAttribute('aria-pressed')") == "true"
    browser.click('[data-filter="unusable"]')
    assert browser.run(bright) == 4
    browser.click('[data-filter="cheat"]')
    assert browser.run(shown) == ["task-001"]
    browser.click('[data-filter="all"]')
    browser.press("/", "w", "h", "y")
    assert browser.run(shown) == ["task-004"]
    assert browser.run("document.querySelector('#status').textContent") == "1 of 4 tasks shown"
    browser.press("q")
    assert browser.run("document.querySelector('#none').hidden") is False
    browser.press("Escape")
    assert len(browser.run(shown)) == 4
    quiet(browser)


def test_a_click_opens_and_back_closes(browser: Browser, rich: Path) -> None:
    browser.open(rich)
    browser.click('[href="#task-001/attempt-9"]')
    told = detail(browser)
    assert "Attempt 9 (skill) cheated" in told
    assert "cat ../secret.txt" in told
    browser.click("#detail .siblings [href='#task-001/baseline-7']")
    browser.wait("document.querySelector('#detail-title').textContent === 'Baseline attempt 7 (no skill) passed'")
    browser.run("history.go(-2)")
    browser.wait("document.querySelector('#detail').hidden")
    quiet(browser)


def test_a_link_leads_to_its_attempt_and_a_broken_one_to_the_page(browser: Browser, rich: Path) -> None:
    browser.open(rich, "task-004/attempt-10")
    assert "the judge gave no verdict" in detail(browser)
    browser.open(rich, "task-099/attempt-1")
    assert browser.run("document.querySelector('#detail').hidden")
    quiet(browser)


def test_tool_calls_hold_their_own_results(browser: Browser, rich: Path) -> None:
    browser.open(rich, "task-001/attempt-2")
    detail(browser)
    browser.click("#detail h3 button")
    calls = browser.run("[...document.querySelectorAll('.call')].map((one) => one.innerText)")
    assert len(calls) == 3
    assert "git diff --stat" in calls[0]
    assert "1 file changed" in calls[0]
    assert "PORT = 8080" in calls[1]
    assert "[main 3f2a] changed the port" in calls[2]


def test_a_change_is_shown_as_one(browser: Browser, tmp_path: Path) -> None:
    before = "".join(f"line {i}\n" for i in range(60))
    after = before.replace("line 30\n", "line thirty\nand more\n").replace("line 58\n", "")
    files = (
        ChangedFile(path="a.txt", change="modified", size=9, text=after, before=before),
        ChangedFile(path="unknown.txt", change="modified", size=9, text="as it is now\n"),
    )
    made = run({"One": "P"})
    result = replace(made.results[0], attempts=(replace(made.results[0].attempts[0], changed_files=files),))
    browser.open(written(saved(replace(made, results=(result,)), tmp_path)), "task-001/attempt-1")
    told = detail(browser)
    lines = browser.run("[...document.querySelectorAll('.diff')[0].querySelectorAll('span')].map((one) => one.textContent)")
    assert [line for line in lines if line[0] in "+-"] == ["- line 30", "+ line thirty", "+ and more", "- line 58"]
    assert "⋯ 27 unchanged lines" in lines
    assert len(lines) < 25
    assert "how it was before was not kept" in told
    assert "as it is now" in told


def test_colours_follow_the_system_until_the_reader_chooses(browser: Browser, rich: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    browser.prefers("dark")
    browser.open(rich)
    assert browser.run(background) == "rgb(15, 18, 22)"
    browser.click("#theme")
    assert browser.run(background) == "rgb(255, 255, 255)"
    browser.open(rich)
    assert browser.run(background) == "rgb(255, 255, 255)"
    browser.run("localStorage.clear()")


def test_everything_but_the_attempts_is_there_without_script(browser: Browser, rich: Path) -> None:
    browser.script(False)
    browser.open(rich)
    tree = browser.send("Accessibility.getFullAXTree")["nodes"]
    told = " ".join(str(node.get("name", {}).get("value", "")) for node in tree)
    for words in (
        "77.5%",
        "Writes a conventional commit message",
        REASON,
        "Opening an attempt needs JavaScript",
        "60.0%",
        "PARTIAL",
    ):
        assert words in told
    assert "Search tasks" not in told


def test_what_is_read_aloud(browser: Browser, rich: Path) -> None:
    browser.open(rich, "task-001/attempt-2")
    detail(browser)
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    named = {(node["role"]["value"], node["name"]["value"]) for node in nodes if not node.get("ignored") and node.get("name")}
    assert ("link", "Attempt 2 failed") in named
    assert ("dialog", "Attempt 2 (skill) failed") in named
    assert ("searchbox", "Search tasks") in named
    assert ("group", "Attempts of Writes a conventional commit message, skill") in named
    roles = {node["role"]["value"] for node in nodes if not node.get("ignored")}
    assert {"table", "rowheader", "columnheader"} <= roles
    assert not [name for role, name in named if role in {"link", "button"} and not name.strip()]
    browser.open(rich)
    assert "status" in {node["role"]["value"] for node in browser.send("Accessibility.getFullAXTree")["nodes"]}


@pytest.mark.parametrize("width", [1280, 400])
def test_text_can_be_read(browser: Browser, rich: Path, width: int) -> None:
    """Contrast of at least 4.5 to 1 (WCAG 2.2 AA), in both schemes, on the page and in an attempt."""
    weak = """(() => {
        const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        const rgba = (colour) => {
            canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
            return [...canvas.getImageData(0, 0, 1, 1).data];
        };
        const light = (rgb) => rgb.slice(0, 3).map((c) => c / 255).map((c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
            .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
        const behind = (one) => { for (; one; one = one.parentElement) { const c = rgba(getComputedStyle(one).backgroundColor); if (c[3] === 255) return c; } return rgba('white'); };
        const found = new Set();
        for (const one of document.querySelectorAll('body *')) {
            const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
            if (!own || !one.offsetParent || one.closest('.unseen, :disabled, script, .dim')) continue;
            const [a, b] = [light(rgba(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
            if ((a + .05) / (b + .05) < 4.5) found.add(`${one.tagName}.${one.className} ${one.textContent.slice(0, 20)} ${((a + .05) / (b + .05)).toFixed(2)}`);
        }
        return [...found];
    })()"""
    browser.size(width, 900)
    for scheme in ("light", "dark"):
        browser.prefers(scheme)
        for fragment in ("", "task-001/attempt-2", "task-001/attempt-9", "task-003/attempt-3"):
            browser.open(rich, fragment)
            if fragment:
                detail(browser)
            assert browser.run(weak) == [], (scheme, fragment)


ATTACK = (
    "</script><script>window.pwned=1;document.title='pwned'</script><img src=x onerror=\"window.pwned=1\"><!--<script>"
    "<svg onload=window.pwned=1><iframe srcdoc='<script>parent.pwned=1</script>'><style>*{display:none}</style>"
    "<meta http-equiv=refresh content='0;url=https://evil.example/'><a href=javascript:window.pwned=1>x</a>&lt;b&gt;"
    "<base href=https://evil.example/><form action=https://evil.example/><link rel=stylesheet href=https://evil.example/x.css>"
    " \" ' ` \x1b[31mred\x1b[0m \u202egpj.exe \u2028 \x00 {{body}} </textarea></title></pre>"
)


def attacked() -> Run:
    texts = ("reason", "output", "assert_evidence", "autorater_reasoning", "cleanup_error", "fatal", "model", "judge_model")
    made = task("FCU", number=1, name=ATTACK, **dict.fromkeys(texts, ATTACK))
    files = (
        ChangedFile(path=ATTACK, change="added", size=1, text=ATTACK),
        ChangedFile(path=ATTACK, change="modified", size=1, text=ATTACK + "\n" + ATTACK, before=ATTACK),
        ChangedFile(path=ATTACK, change="deleted", size=0, before=ATTACK),
    )
    attempts = tuple(
        replace(r, assert_passed=False, changed_files=files, cheat_evidence=(ATTACK,), skills_used=(ATTACK,), cli_version=ATTACK)
        for r in made.attempts
    )
    result = replace(made, attempts=attempts, prompt=ATTACK, expect=ATTACK, assert_=ATTACK)
    whole = run(
        {"x": "P"}, spec=ATTACK, backend=ATTACK, model=ATTACK, judge_model=ATTACK, cli_version=ATTACK, selected_tasks=(ATTACK,)
    )
    return replace(whole, results=(result,))


ATTACKING: Sequence[dict[str, Any]] = [
    {"role": "user", "content": ATTACK},
    {"role": "tool_use", "content": ATTACK, "tool_name": ATTACK, "tool_input": {ATTACK: [ATTACK], "command": ATTACK}},
    {"role": "tool_result", "content": ATTACK, "tool_name": ATTACK, "tool_output": ATTACK},
    {"role": "tool_result", "content": "", "tool_name": "another", "tool_output": ATTACK},
    {"role": "assistant", "content": ATTACK},
]


@pytest.mark.parametrize("compared", [False, True])
def test_hostile_words_are_shown_and_do_nothing(browser: Browser, tmp_path: Path, compared: bool) -> None:
    path = saved(attacked(), tmp_path / "a", lambda _: ATTACKING)
    page = written(path, saved(attacked(), tmp_path / "b", lambda _: ATTACKING)) if compared else written(path)
    for number in (1, 2, 3):
        browser.open(page, f"{'after/' if compared else ''}task-001/attempt-{number}")
        detail(browser)
        browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        browser.wait("[...document.querySelectorAll('.call')].every((one) => one.childElementCount === 2)")
        browser.press("f", "j", "k")
        told = browser.run("document.body.innerText")
        assert told.count('<img src=x onerror="window.pwned=1">') > 15
        assert "\\x1b[31mred" in told
        assert "\\u202egpj.exe" in told
        assert not browser.run("/[\\u202a-\\u202e\\u2066-\\u2069\\u2028\\u001b]/.test(document.body.textContent)")
        assert browser.run("typeof window.pwned") == "undefined"
        assert browser.run("document.title").endswith("pytest-caliper")
        assert browser.run("document.querySelectorAll('img, iframe, form, base, body style, a:not([href^=\"#\"])').length") == 0
        assert browser.run("[...document.scripts].filter((one) => one.type !== 'application/json').length") == 1
        quiet(browser)


def test_the_policy_holds_even_if_markup_got_in(browser: Browser, rich: Path) -> None:
    browser.open(rich)
    browser.run("""document.querySelector('main').insertAdjacentHTML('beforeend',
        '<img src=x onerror="window.pwned=1"><img src="https://evil.example/x.png"><div style="color:red">x</div>')""")
    browser.run(
        """(() => { const one = document.createElement('script'); one.textContent = 'window.pwned = 1'; document.body.append(one); })()"""
    )
    browser.run("fetch('https://evil.example/').catch(() => 0)")
    assert browser.run("typeof window.pwned") == "undefined"
    assert len([line for line in browser.console if "Content Security Policy" in line]) >= 4


def test_a_megabyte_on_one_line_can_be_read(browser: Browser, tmp_path: Path) -> None:
    turns = [
        {"role": "tool_use", "content": "", "tool_name": "Bash", "tool_input": {"command": "cat x"}},
        {
            "role": "tool_result",
            "content": "",
            "tool_name": "Bash",
            "tool_output": "x" * 1_000_000 + "\U0001f44b" * 50_000 + "END",
        },
        {"role": "assistant", "content": "many lines\n" * 100_000},
    ]
    browser.open(written(saved(run({"One": "P"}), tmp_path, lambda _: turns)), "task-001/attempt-1")
    told = detail(browser)
    assert "Show all 100,001 lines" in told
    assert len(told) < 20_000
    browser.click(".call summary")
    browser.wait("document.querySelector('.call .more') !== null")
    whole = "document.querySelectorAll('.call pre')[1].textContent"
    browser.run("document.querySelectorAll('.call .more')[0].click()")
    assert browser.run(f"{whole}.length") == 1_000_000 + 100_000 + 3
    assert browser.run(f"{whole}.endsWith('\U0001f44bEND')")
    assert browser.run(f"[...{whole}].every((one) => one.length === 2 || one < '\\ud800' || one > '\\udfff')")
    quiet(browser)


def test_a_thousand_attempts_open_at_once(browser: Browser, tmp_path: Path, record_property: Any) -> None:
    """The page answers long before its 20 MB of transcripts are read; bounds are generous for a busy machine."""
    strip = "PFPPPCPUPFPPPPPPPPPF"
    names = {f"Task number {i}": strip for i in range(25)}
    output = "gcc -c <foo>.c -o foo.o && echo '\x1b[32mok\x1b[0m'\n" * 400
    turns = [*TURNS, {"role": "tool_result", "content": "", "tool_name": "Bash", "tool_output": output}]
    page = written(saved(run(names, names), tmp_path, lambda _: turns))
    assert page.stat().st_size > 20_000_000
    browser.open(page)
    ready = browser.run("performance.getEntriesByName('ready')[0].startTime")
    record_property("ready_ms", ready)
    assert ready < 4_000
    assert browser.run("document.querySelectorAll('a.attempt[data-block]').length") == 1_000
    opened = browser.run("""(() => {
        const begin = performance.now();
        document.querySelector('[href="#task-025/baseline-20"]').click();
        return new Promise((done) => { const look = () => document.querySelector('#detail .numbers') ? done(performance.now() - begin) : setTimeout(look, 5); look(); });
    })()""")
    record_property("open_ms", opened)
    assert opened < 2_000
    browser.press("Escape", "f")
    assert browser.run("document.querySelectorAll('#tasks a.attempt:not(.dim)').length") == 25 * 4
    quiet(browser)


def test_two_runs_lead_to_both_transcripts(browser: Browser, tmp_path: Path) -> None:
    before = run({"Writes a message": "PFFFFFFFFF", "Old": "P"}, id="aaaa", timestamp="2026-11-19T10:00:00Z")
    after = run({"Writes a message": "PPPPPPPPFP", "New": "P"}, id="bbbb")
    changed = tuple(replace(r, prompt="Another prompt.") if r.task_name == "Writes a message" else r for r in before.results)
    page = written(
        saved(
            replace(before, results=changed),
            tmp_path / "a",
            lambda r: [{"role": "assistant", "content": f"before {r.key.attempt}"}],
        ),
        saved(after, tmp_path / "b", lambda r: [{"role": "assistant", "content": f"after {r.key.attempt}"}]),
    )
    browser.open(page, "before/task-001/attempt-3")
    told = detail(browser)
    assert "before 3" in told
    assert "Another prompt." in told
    browser.click("#detail [href='#after/task-001/attempt-3']")
    browser.wait("document.querySelector('#detail').innerText.includes('after 3')")
    assert "Commit the change to the port." in detail(browser)
    assert "Attempt 3 (after) passed" in detail(browser)
    quiet(browser)


def test_it_prints_without_controls(browser: Browser, rich: Path) -> None:
    browser.open(rich, "task-001/attempt-2")
    detail(browser)
    browser.send("Emulation.setEmulatedMedia", media="print")
    hidden = (
        "['.toolbar', '#theme', '.bar button'].every((one) => getComputedStyle(document.querySelector(one)).display === 'none')"
    )
    assert browser.run(hidden)
    assert browser.run("getComputedStyle(document.querySelector('#detail')).position") == "static"
    assert len(browser.send("Page.printToPDF")["data"]) > 10_000
    browser.send("Emulation.setEmulatedMedia", media="")


def test_attempts_of_odd_tasks_can_be_linked_to(browser: Browser, tmp_path: Path) -> None:
    """Files of others have ids of their own."""
    odd = 'a/b #"c"?%<d>'
    made = run({"One": "F"})
    record = attempt("F", task=odd, name="One", number=1)
    page = written(saved(replace(made, results=(replace(made.results[0], task_id=odd, attempts=(record,)),)), tmp_path))
    browser.open(page)
    browser.press("j", "Enter")
    assert REASON in detail(browser)
    link = browser.run("location.hash")
    browser.open(page, link[1:])
    assert REASON in detail(browser)
    assert json.dumps(link).isascii()
