ncmpi_put_vara_double_all(file, variable, start, count, buffer);  /* not the one without _all */
