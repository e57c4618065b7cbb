//! A holder that tests can kill and stop: see `docker_driver::stand_in::holder`.

fn main() {
    docker_driver::stand_in::holder();
}
