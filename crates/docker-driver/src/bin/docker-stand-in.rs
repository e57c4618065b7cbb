//! A stand-in for the docker client; see `docker_driver::stand_in`.

fn main() {
    docker_driver::stand_in::run()
}
