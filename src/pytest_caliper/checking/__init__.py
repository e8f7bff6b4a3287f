"""The grader check: whether a spec's own checks can tell work from no work, tried before an agent is paid for."""
