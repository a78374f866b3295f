"""Operations that move whole elements."""
