# For the scripts of this folder: an apt of its own in ./apt, which neither sees nor changes the machine's packages and architectures.

# own_apt ARCHITECTURE: every apt-get after it is that one.
own_apt() {
  mkdir -p apt/state/lists/partial apt/cache/archives/partial
  : > apt/state/status
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
  cat > apt/conf <<CONF
APT::Architecture "$1";
APT::Architectures {"$1";};
Dir::State "$PWD/apt/state";
Dir::State::status "$PWD/apt/state/status";
Dir::Cache "$PWD/apt/cache";
Dir::Etc::sourcelist "$PWD/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Sandbox::User "root";
CONF
  export APT_CONFIG="$PWD/apt/conf"
}

# from_mirror deb|deb-src RELEASE: what it offers from now on, of the Debian mirror that the machine's apt uses.
from_mirror() {
  echo "$1 ${mirror:-http://deb.debian.org/debian} $2 main" > apt/sources.list
  apt-get update -qq
}
