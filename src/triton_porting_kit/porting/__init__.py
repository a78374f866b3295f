"""Creating the repository of a backend from the template, updating it, and reporting the progress of the port."""
