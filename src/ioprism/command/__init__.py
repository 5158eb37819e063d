"""What all commands share: options, output, and errors that become exit codes."""
