"""Studies, jobs, launchers and what is published: where all other rooms come together."""
