"""What the editor that started pytest can show."""

from __future__ import annotations

import os


def shows_a_task_once() -> bool:
    """Whether the attempts of a task must run one after the other to be shown below one node: PyCharm without `-n`.

    Its runner sets TEAMCITY_VERSION to LOCAL. It closes a task's node when an attempt of another task begins, and opens a second
    node of the same name when the first one's turn comes again.
    """
    return os.environ.get("TEAMCITY_VERSION") == "LOCAL"
