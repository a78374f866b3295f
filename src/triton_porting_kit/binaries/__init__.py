"""Readers and writers of the kit's own for object files: ELF, and the code objects of AMD's GPUs."""
