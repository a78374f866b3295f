"""The kit's own readers and writers of object files: ELF, and code objects for AMD GPUs."""
