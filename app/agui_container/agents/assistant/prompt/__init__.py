"""What the operator tells the assistant: its prompt, files of the project, skills."""
