"""From nothing to a backend of one's own: making a repository from the template, and keeping it up to date."""
