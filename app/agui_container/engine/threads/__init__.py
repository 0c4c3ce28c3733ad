"""Operations of callers on their threads."""
