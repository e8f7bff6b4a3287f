"""The plugin is tested with pytest's own pytester."""

pytest_plugins = ["pytester"]
