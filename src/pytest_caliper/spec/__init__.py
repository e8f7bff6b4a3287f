"""What is asked: the format of a spec, and reading it with line numbers. Imports neither pytest nor a process."""
