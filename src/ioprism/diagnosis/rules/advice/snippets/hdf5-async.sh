# the asynchronous connector of HDF5, without changes to the program
export HDF5_PLUGIN_PATH=/path/to/vol-async/lib
export HDF5_VOL_CONNECTOR="async under_vol=0;under_info={}"
