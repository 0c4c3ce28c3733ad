"""What is measured, one module each: a function from ``OpenAIOptions`` to sections of the report."""
