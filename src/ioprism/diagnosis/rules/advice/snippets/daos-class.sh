# spread the data of new files over all targets (S1 keeps a file on one)
daos fs set-attr --path {directory} --oclass SX --chunk-size {stripe_size}
