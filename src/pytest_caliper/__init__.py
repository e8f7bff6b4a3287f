"""pytest-caliper: measure how often an agent skill works, how sure that is, and what the skill adds."""

__version__ = "0.1.0"
