//! A typed driver of the docker command line client.
