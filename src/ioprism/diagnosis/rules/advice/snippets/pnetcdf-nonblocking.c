/* post all variables, then let one collective call move them together */
for (int i = 0; i < variables; i++)
    ncmpi_iput_vara_double(file, variable[i], start, count, buffer[i], &request[i]);
ncmpi_wait_all(file, variables, request, status);
