"""Parts of the system text: context files and skills of the operator, and the application's context."""
