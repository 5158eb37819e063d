/* do not write fill values first: every element is written anyway */
int before;
ncmpi_set_fill(file, NC_NOFILL, &before);
