"use strict";
(function () {
  const root = document.documentElement;
  root.classList.add("scripted");
  const $ = (selector, from) => (from || document).querySelector(selector);
  const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));
  const detail = $("#detail");
  const tasks = all(".task");
  const attempts = all("a.attempt[data-block]", $("#tasks") || document);
  const keyOf = (link) => link.getAttribute("href").slice(1);
  const byKey = new Map(attempts.map((link) => [keyOf(link), link]));
  const state = { filter: "all", query: "", open: null };

  /* Foreign text is only ever set with textContent: nothing here makes markup of it. */
  function el(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "on") Object.entries(value).forEach(([event, act]) => made.addEventListener(event, act));
      else if (value === true) made.setAttribute(name, "");
      else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
    }
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return made;
  }
  const button = (text, act, more) => el("button", { type: "button", on: { click: act }, ...more }, text);
  function mark(kind) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "mark");
    svg.setAttribute("aria-hidden", "true");
    const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
    use.setAttribute("href", "#mark-" + kind);
    svg.append(use);
    return svg;
  }
  const count = (number, noun) => number.toLocaleString("en") + " " + noun + (number === 1 ? "" : "s");

  /* Long texts: folded first; laid out in pieces when asked for, so that a megabyte on one line does not stall the page. */
  const FOLD_LINES = 24, FOLD_CHARS = 3000, PIECE = 20000;
  function pieces(text) {
    if (text.length <= 2 * PIECE) return [text];
    const found = [];
    for (let at = 0; at < text.length;) {
      let end = Math.min(text.length, at + PIECE);
      if (end < text.length) {
        const line = text.lastIndexOf("\n", end);
        if (line > at) end = line + 1;
        else if (/[\uD800-\uDBFF]/.test(text[end - 1])) end += 1;
      }
      found.push(el("div", { class: "chunk" }, text.slice(at, end).replace(/\n$/, (last) => (end < text.length ? "" : last))));
      at = end;
    }
    return found;
  }
  function cutAt(text) {
    let at = -1;
    for (let line = 0; line < FOLD_LINES; line++) {
      at = text.indexOf("\n", at + 1);
      if (at < 0 || at > FOLD_CHARS) break;
    }
    const end = at < 0 ? FOLD_CHARS : Math.min(at, FOLD_CHARS);
    return text.length - end < 400 && (at < 0 || text.indexOf("\n", end + 1) < 0) ? text.length : end;
  }
  function longText(text, tag, className, lay) {
    const holder = el("div");
    const place = lay || ((part, whole) => (whole ? pieces(part) : [part]));
    const end = cutAt(text);
    const body = el(tag, { class: className }, place(text.slice(0, end), end >= text.length));
    holder.append(body);
    if (end < text.length) {
      const lines = text.split("\n").length;
      const size = lines > FOLD_LINES ? count(lines, "line") : count(text.length, "character");
      const more = button("Show all " + size, () => {
        body.replaceChildren(...place(text, true));
        more.remove();
      }, { class: "more" });
      holder.append(more);
    }
    return holder;
  }

  /* Differences: longest common subsequence of lines, after equal beginnings and ends. */
  function difference(before, after) {
    const a = before === "" ? [] : before.replace(/\n$/, "").split("\n");
    const b = after === "" ? [] : after.replace(/\n$/, "").split("\n");
    let start = 0, end = 0;
    while (start < a.length && start < b.length && a[start] === b[start]) start++;
    while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
    const x = a.slice(start, a.length - end), y = b.slice(start, b.length - end);
    const lines = a.slice(0, start).map((line) => [" ", line]);
    if (x.length * y.length > 4e6) {
      lines.push(...x.map((line) => ["-", line]), ...y.map((line) => ["+", line]));
    } else {
      const width = y.length + 1;
      const best = new Uint32Array((x.length + 1) * width);
      for (let i = x.length - 1; i >= 0; i--) {
        for (let j = y.length - 1; j >= 0; j--) {
          best[i * width + j] = x[i] === y[j] ? best[(i + 1) * width + j + 1] + 1
            : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
        }
      }
      let i = 0, j = 0;
      while (i < x.length || j < y.length) {
        if (i < x.length && j < y.length && x[i] === y[j]) { lines.push([" ", x[i]]); i++; j++; }
        else if (j >= y.length || (i < x.length && best[(i + 1) * width + j] >= best[i * width + j + 1])) lines.push(["-", x[i++]]);
        else lines.push(["+", y[j++]]);
      }
    }
    return lines.concat(a.slice(a.length - end).map((line) => [" ", line]));
  }
  function diffView(lines) {
    const CONTEXT = 3;
    const near = lines.map(() => false);
    lines.forEach(([sign], at) => {
      if (sign !== " ") for (let i = Math.max(0, at - CONTEXT); i <= Math.min(lines.length - 1, at + CONTEXT); i++) near[i] = true;
    });
    const rows = [];
    for (let at = 0; at < lines.length; at++) {
      if (near[at]) {
        const [sign, text] = lines[at];
        rows.push(el("span", { class: { "+": "add", "-": "del" }[sign] || null }, sign + " " + text));
      } else {
        const first = at;
        while (at + 1 < lines.length && !near[at + 1]) at++;
        rows.push(el("span", { class: "gap" }, "\u22EF " + count(at - first + 1, "unchanged line")));
      }
    }
    const LIMIT = 400;
    const body = el("pre", null, rows.slice(0, LIMIT));
    const holder = el("div", { class: "diff" }, body);
    if (rows.length > LIMIT) {
      const more = button("Show all " + count(rows.length, "line"), () => { body.append(...rows.slice(LIMIT)); more.remove(); }, { class: "more" });
      holder.append(more);
    }
    return holder;
  }

  /* One attempt, reason first. */
  const heading = (text, ...more) => el("h3", null, text, ...more);
  const aside = (text) => el("span", { class: "aside" }, text);
  function evidence(text) {
    return longText(text, "pre", "block evidence", (part, whole) => part.length > 60000 ? (whole ? pieces(part) : [part])
      : part.split("\n").map((line, at, lines) => el("span", {
        class: line.startsWith(">") ? "source" : /^\s+\+\s/.test(line) ? "aside" : null,
      }, line + (at + 1 < lines.length && !line.startsWith(">") ? "\n" : ""))));
  }
  function votes(found) {
    const words = found.map((vote) => (vote === true ? "yes" : vote === false ? "no" : "no verdict"));
    return words.length ? aside("votes: " + words.join(", ")) : null;
  }
  function checks(data, asked) {
    const made = [];
    for (const check of data.checks) {
      const passed = check.passed;
      if (check.check === "assert") {
        const word = passed === true ? "held" : passed === false ? "failed" : "gave no verdict";
        made.push(heading("assert: ", el("span", { class: "said " + (passed ? "yes" : "no") }, word)));
        if (check.text) made.push(evidence(check.text));
        else if (passed === false) made.push(el("p", { class: "muted" }, "No evidence was kept."));
        if (asked.assert) made.push(el("details", { class: "fold" }, el("summary", null, "The whole assert"), el("pre", { class: "block" }, asked.assert)));
      } else {
        const word = passed === true ? "yes" : passed === false ? "no" : "no verdict";
        made.push(heading("Judge says ", el("span", { class: "said " + (passed ? "yes" : "no") }, word), votes(check.votes), check.model && aside(check.model)));
        if (asked.expect) made.push(el("p", { class: "label-line" }, "What was expected"), longText(asked.expect, "div", "quote"));
        if (check.text) made.push(el("p", { class: "label-line" }, "What the judge says"), longText(check.text, "div", "block prose"));
      }
    }
    return made;
  }
  function files(found) {
    if (!found.length) return [];
    const made = [heading("Changed files", aside(count(found.length, "file")))];
    let room = 60000;
    for (const file of found) {
      const length = (file.text || "").length + (file.before || "").length;
      const box = el("details", { class: "file", open: length <= room && length < 8000 },
        el("summary", null, el("span", { class: "change " + file.change }, file.change), el("span", { class: "path" }, file.path),
          el("span", { class: "size" }, file.size)));
      room -= length;
      lazily(box, () => fileBody(file));
      made.push(box);
    }
    return made;
  }
  function fileBody(file) {
    let body;
    if (file.change === "added" && file.text !== null) body = diffView(difference("", file.text));
    else if (file.change === "deleted" && file.before !== null) body = diffView(difference(file.before, ""));
    else if (file.before !== null && file.text !== null && !file.truncated) body = diffView(difference(file.before, file.text));
    else if (file.text !== null) {
      body = el("div", null, el("p", { class: "label-line" }, "As it was afterwards; how it was before was not kept."), longText(file.text, "pre"));
    } else body = el("div", null, el("p", { class: "muted" }, "No text was kept."));
    if (file.truncated) body.append(el("p", { class: "label-line" }, "Cut here: the file goes on."));
    return body;
  }
  function lazily(box, make) {
    const fill = (wanted) => { if (wanted && box.childElementCount === 1) box.append(make()); };
    fill(box.open);
    box.addEventListener("toggle", () => fill(box.open));
    box.fill = fill;
  }
  function transcript(turns, asked) {
    const calls = [];
    const list = el("div");
    const waiting = [];
    if (asked.prompt && !(turns[0] && turns[0].role === "user")) list.append(said("user", "The prompt", asked.prompt));
    for (const turn of turns) {
      if (turn.role === "tool_use") {
        const box = el("details", { class: "call" });
        const call = { box: box, turn: turn, output: turn.output };
        calls.push(call);
        waiting.push(call);
        if (turn.text) list.append(said("assistant", "Agent", turn.text));
        list.append(box);
      } else if (turn.role === "tool_result") {
        const output = [turn.text, turn.output].filter((part) => part).join("\n");
        const at = waiting.findIndex((call) => call.output === undefined && (!turn.tool || call.turn.tool === turn.tool));
        if (at >= 0) waiting.splice(at, 1)[0].output = output;
        else {
          const box = el("details", { class: "call" });
          calls.push({ box: box, turn: { tool: turn.tool || "Result", about: "result without a call" }, output: output });
          list.append(box);
        }
      } else list.append(said(turn.role, turn.role === "user" ? "User" : "Agent", turn.text || ""));
    }
    for (const call of calls) {
      const size = call.output === undefined ? "no result" : call.output === "" ? "empty result" : count(call.output.split("\n").length, "line");
      call.box.append(el("summary", null, el("span", { class: "tool" }, call.turn.tool || "Tool"),
        el("span", { class: "about" }, call.turn.about || ""), el("span", { class: "size" }, size)));
      lazily(call.box, () => callBody(call));
    }
    const toggle = calls.length ? button("Open all calls", () => {
      const opening = calls.some((call) => !call.box.open);
      calls.forEach((call) => { call.box.open = opening; call.box.fill(opening); });
      toggle.textContent = opening ? "Close all calls" : "Open all calls";
    }) : null;
    const told = turns.length ? count(turns.length, "turn") + (calls.length ? ", " + count(calls.length, "tool call") : "") : "none was kept";
    return [heading("Transcript", aside(told), toggle), list];
  }
  function callBody(call) {
    const body = el("div");
    for (const [name, value] of call.turn.input || []) body.append(el("p", { class: "label-line" }, name), longText(value, "pre"));
    if (call.output !== undefined) body.append(el("p", { class: "label-line" }, "Result"), longText(call.output, "pre"));
    return body;
  }
  const said = (role, who, text) => el("div", { class: "turn " + role }, el("p", { class: "who" }, who), longText(text, "div", "prose"));

  function askedOf(link) {
    const row = link.closest(".task");
    const run = /^[^/]*\/(?=[^/]*\/)/.exec(keyOf(link));
    const part = (name) => {
      const found = all('[data-part="' + name + '"]', row).find((one) => !one.dataset.of || (run && one.dataset.of === run[0]));
      return found ? found.textContent : "";
    };
    return { prompt: part("prompt"), expect: part("expect"), assert: part("assert"), name: $(".name", row).textContent, id: $(".id", row).textContent };
  }
  function siblings(link) {
    const grid = el("div", { class: "siblings" });
    for (const strip of all(".strip", link.closest(".task"))) {
      const label = $(".arm", strip.closest("tr"));
      const copy = strip.cloneNode(true);
      all("[id]", copy).forEach((found) => found.removeAttribute("id"));
      all("a", copy).forEach((found) => {
        found.classList.remove("dim");
        found.classList.toggle("open", keyOf(found) === keyOf(link));
        if (keyOf(found) === keyOf(link)) found.setAttribute("aria-current", "true");
        found.tabIndex = 0;
      });
      grid.append(el("span", { class: "label" }, label ? label.textContent : ""), copy);
    }
    return grid;
  }
  function show(link, data) {
    const asked = askedOf(link);
    const attempt = data.attempt;
    const label = $(".arm", link.closest("tr"));
    const before = neighbour(link, -1), after = neighbour(link, 1);
    const reason = attempt.reason || (attempt.kind === "pass" ? "Every check held." : "No reason was kept.");
    detail.replaceChildren(
      el("div", { class: "bar" },
        el("span", { class: "task" }, asked.id + " \u00B7 " + asked.name),
        button("\u2039 Previous", () => before && go(before), { disabled: !before, "aria-keyshortcuts": "k" }),
        button("Next \u203A", () => after && go(after), { disabled: !after, "aria-keyshortcuts": "j" }),
        button("Close", close, { class: "close", "aria-keyshortcuts": "Escape" })),
      el("h2", { id: "detail-title", tabindex: "-1" }, el("span", { class: "attempt " + attempt.kind }, mark(attempt.kind)),
        attempt.title + (label && label.textContent ? " (" + label.textContent + ")" : "") + " " + attempt.word),
      el("p", { class: "brief" }, attempt.brief.join(" \u00B7 ")),
      siblings(link),
      el("p", { class: "reason-box " + attempt.kind }, reason),
      ...attempt.warnings.map((text) => el("p", { class: "notice" }, "! " + text)),
      ...(attempt.cheat.length ? [heading("What it must not do, and did"), ...attempt.cheat.map((text) => longText(text, "pre", "block"))] : []),
      ...checks(attempt, asked),
      heading("The agent's answer"),
      attempt.answer ? longText(attempt.answer, "div", "block prose") : el("p", { class: "muted" }, "None."),
      ...files(attempt.files),
      ...transcript(data.turns, asked),
      heading("Numbers"),
      el("dl", { class: "numbers" }, attempt.facts.map(([name, text]) => [el("dt", null, name), el("dd", null, text)])));
    detail.scrollTop = 0;
    $("#detail-title").focus({ preventScroll: true });
  }

  /* The data of an attempt is there once the parser is past it. */
  function load(link, act) {
    const block = document.getElementById(link.dataset.block);
    if (block && (block.nextElementSibling || document.readyState !== "loading")) act(JSON.parse(block.textContent));
    else if (document.readyState === "loading") setTimeout(() => { if (state.open === link) load(link, act); }, 30);
    else act(null);
  }
  function open(link) {
    if (state.open) state.open.classList.remove("open");
    state.open = link;
    link.classList.add("open");
    current(link);
    detail.hidden = false;
    document.body.classList.add("opened");
    const task = link.closest(".task");
    if (!task.hidden) (task.offsetHeight < innerHeight / 2 ? task : link).scrollIntoView({ block: "nearest" });
    detail.replaceChildren(el("div", { class: "bar" }, el("span", { class: "task" }, "Loading\u2026"), button("Close", close)));
    load(link, (data) => {
      if (data) show(link, data);
      else detail.replaceChildren(el("div", { class: "bar" }, el("span", { class: "task" }, "This attempt was not kept."), button("Close", close)));
    });
  }
  function forget() {
    if (!state.open) return;
    const link = state.open;
    state.open = null;
    link.classList.remove("open");
    detail.hidden = true;
    detail.replaceChildren();
    document.body.classList.remove("opened");
    link.focus();
  }
  function close() {
    try { history.replaceState(null, "", "#"); } catch (refused) { /* a page inside another one keeps its address */ }
    forget();
  }
  function go(link) {
    /* Opened at once: the event that the address causes comes later, and keys may be faster. */
    open(link);
    if (location.hash !== "#" + keyOf(link)) location.hash = keyOf(link);
  }
  function follow() {
    const link = byKey.get(location.hash.slice(1));
    if (!link) forget();
    else if (link !== state.open) open(link);
  }

  /* Which attempts are shown, and which of them the keys are at. */
  const MATCHES = {
    all: () => true,
    failures: (link) => !link.classList.contains("base") && (link.classList.contains("fail") || link.classList.contains("cheat")),
    cheat: (link) => link.classList.contains("cheat"),
    unusable: (link) => link.classList.contains("unusable"),
  };
  const shownAttempts = () => attempts.filter((link) => !link.closest(".task").hidden && !link.classList.contains("dim"));
  let at = attempts[0] || null;
  function current(link) {
    if (at) at.tabIndex = -1;
    at = link;
    at.tabIndex = 0;
  }
  function neighbour(link, step) {
    const shown = shownAttempts();
    const place = shown.indexOf(link);
    return place < 0 ? shown[0] || null : shown[place + step] || null;
  }
  function apply() {
    const words = state.query.toLowerCase().split(/\s+/).filter((word) => word);
    let shown = 0;
    for (const task of tasks) {
      const name = task.dataset.name.toLowerCase();
      let some = state.filter === "all";
      for (const link of all("a.attempt", task)) {
        const matches = MATCHES[state.filter](link);
        link.classList.toggle("dim", !matches);
        some = some || matches;
      }
      task.hidden = !(some && words.every((word) => name.includes(word)));
      shown += task.hidden ? 0 : 1;
    }
    const filtered = state.filter !== "all" || words.length;
    $("#status").textContent = filtered ? shown + " of " + count(tasks.length, "task") + " shown" : "";
    $("#none").hidden = shown > 0 || !tasks.length;
    all("[data-filter]").forEach((found) => found.setAttribute("aria-pressed", String(found.dataset.filter === state.filter)));
    const left = shownAttempts();
    if (left.length && !left.includes(at)) current(left[0]);
  }
  function filter(name) {
    const wanted = $('[data-filter="' + name + '"]');
    if (wanted && !wanted.disabled) state.filter = state.filter === name && name !== "all" ? "all" : name;
    apply();
  }
  function step(by) {
    const next = state.open ? neighbour(state.open, by) : document.activeElement === at ? neighbour(at, by) : at;
    if (!next) return;
    if (state.open) go(next);
    else { current(next); next.focus(); }
  }
  function vertical(by) {
    const strips = all(".strip").filter((strip) => !strip.closest(".task").hidden && strip.closest("#tasks"));
    const strip = at.closest(".strip");
    const column = all("a", strip).indexOf(at);
    for (let place = strips.indexOf(strip) + by; strips[place]; place += by) {
      const found = all("a", strips[place]);
      if (found.length) {
        const next = found[Math.min(column, found.length - 1)];
        current(next);
        next.focus();
        return;
      }
    }
  }
  const KEYS = {
    j: () => step(1), k: () => step(-1),
    f: () => filter("failures"),
    "/": () => $("#search").focus(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input, textarea, select");
    if (event.key === "Escape") {
      if (typing) { event.target.value = ""; state.query = ""; apply(); event.target.blur(); }
      else if (state.open) close();
      else if (state.filter !== "all" || state.query) { state.filter = "all"; state.query = ""; $("#search").value = ""; apply(); }
      return;
    }
    if (typing) {
      if (event.key === "Enter" || event.key === "ArrowDown") { const left = shownAttempts(); if (left.length) { current(left[0]); left[0].focus(); } event.preventDefault(); }
      return;
    }
    const strip = event.target.closest("#tasks a.attempt");
    const arrows = strip ? { ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowDown: () => vertical(1), ArrowUp: () => vertical(-1) }
      : detail.contains(event.target) && state.open ? { ArrowRight: () => step(1), ArrowLeft: () => step(-1) } : {};
    const act = KEYS[event.key] || arrows[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  /* Start. */
  attempts.forEach((link) => { link.tabIndex = link === at ? 0 : -1; });
  document.addEventListener("focusin", (event) => { if (byKey.get(event.target.id) === event.target) current(event.target); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href^="#"]');
    if (link && byKey.has(keyOf(link)) && location.hash === link.getAttribute("href")) { event.preventDefault(); open(byKey.get(keyOf(link))); }
  });
  window.addEventListener("hashchange", follow);
  window.addEventListener("beforeprint", () => all("details", detail).forEach((box) => { box.open = true; if (box.fill) box.fill(true); }));
  const toolbar = $(".toolbar");
  toolbar.hidden = false;
  $("#theme").hidden = false;
  all("[data-filter]").forEach((found) => found.addEventListener("click", () => { state.filter = found.dataset.filter; apply(); }));
  $("#search").addEventListener("input", (event) => { state.query = event.target.value; apply(); });
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const KEY = "pytest-caliper-theme";
  let theme = null;
  try { theme = localStorage.getItem(KEY); } catch (refused) { /* nothing is remembered then */ }
  function paint() {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    const isDark = theme ? theme === "dark" : dark.matches;
    $("#theme").textContent = isDark ? "Light" : "Dark";
    $("#theme").setAttribute("aria-label", isDark ? "Use light colours" : "Use dark colours");
  }
  $("#theme").addEventListener("click", () => {
    theme = (theme ? theme === "dark" : dark.matches) ? "light" : "dark";
    try { localStorage.setItem(KEY, theme); } catch (refused) { /* as above */ }
    paint();
  });
  dark.addEventListener("change", paint);
  paint();
  follow();
  performance.mark("ready");
})();
