# Two commands for a fresh machine; each sets up .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all lint record-demo record-starter-pack record-skills images docs clean

demo: $(STAMP)  ## the main job on recorded attempts: no agent, no key, no network
	@$(BIN)/python -m pytest -p no:cacheprovider -c examples/quickstart/pytest.ini examples/quickstart/changelog.eval.yaml \
		--caliper-k=3 --caliper-baseline --caliper-replay; \
	status=$$?; if [ $$status -ne 1 ]; then echo "make demo: pytest should end with 1, not $$status" >&2; exit 2; fi; \
	echo "As recorded: one attempt with the skill fails, so pytest ends with status 1."

test: $(STAMP)  ## all tests but those of slow agent CLIs; those of real CLIs are skipped with a reason where node is missing
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow_cli and not matrix_full" $(ARGS)

test-all: $(STAMP)  ## all tests, with every agent CLI
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff format --check src tests examples benchmarks docs conftest.py
	$(BIN)/ruff check src tests examples benchmarks docs conftest.py
	$(BIN)/mypy
	$(BIN)/lint-imports

record-demo: $(STAMP)  ## record the quick start's cassettes anew (needs node; stays on loopback)
	$(BIN)/python examples/quickstart/record.py

record-starter-pack: $(STAMP)  ## record the cassettes of examples/starter-pack anew (needs node, git and curl; stays on loopback)
	$(BIN)/python examples/starter-pack/record.py

record-skills: $(STAMP)  ## record the cassettes of our agent skills anew, after every change of a SKILL.md or its spec (the same)
	$(BIN)/python tests/real_cli/our_skills.py

images: $(STAMP)  ## make the terminal images of docs/images from what the demo prints
	$(BIN)/python docs/images/render.py

docs: $(STAMP)  ## the site in .cache/site/html: broken links and pages that nobody finds are errors
	$(BIN)/python docs/generate.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -q -b html -d .cache/site/doctrees docs .cache/site/html
	@echo "open .cache/site/html/index.html"

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group test --group lint --group docs
	@touch $(STAMP)

clean:
	rm -rf $(VENV) .cache dist
