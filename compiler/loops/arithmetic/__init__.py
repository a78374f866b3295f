"""Operations on elements, scalars and vectors alike, and the functions that are written out."""
