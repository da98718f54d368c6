#!/usr/bin/env bash
# A SLURM of one machine, to try the cluster's way without a cluster:
#
#   sudo profiles/slurm/loopback.sh make reports ON=slurm-loopback
#
# It installs slurm-wlm and munge where they are missing, starts munged, slurmctld and slurmd with a configuration in a
# folder of its own, runs the command with SLURM_CONF set, stops the daemons, removes the folder, and returns the
# command's exit status. The machine's own /etc/slurm stays as it is, and every daemon listens on 127.0.0.1 alone.
# Under sudo the command runs as the user who called it. Tried on Debian 12 with SLURM 22.05.
#
# LOOPBACK_FOLDER   an empty folder to use and to keep, logs and all, in place of a temporary one
# LOOPBACK_GPUS     pretend so many GPUs: jobs may ask for them and see none; left out: those of /dev/nvidia0 and so on
set -euo pipefail

say() { echo "loopback: $*" >&2; }
refuse() { say "$*"; exit 2; }

[ $# -gt 0 ] || refuse "no command given; for example: $0 make reports ON=slurm-loopback"
[ "$(id -u)" -eq 0 ] || refuse "needs root to start slurmd, and this is $(id -un); for example: sudo $0 $*"
[ -e /etc/debian_version ] || refuse "needs Debian or one of its kin for apt-get, and there is no /etc/debian_version"

[[ "${LOOPBACK_GPUS:-0}" =~ ^[0-9]+$ ]] || refuse "LOOPBACK_GPUS is a number of GPUs, and not '$LOOPBACK_GPUS'"

# What follows is seen by this script and its children alone. The machine is called localhost, because srun listens on
# the address of its name; and the folder stands in place of /etc/slurm, because Snakemake's jobs lose SLURM_CONF.
if [ -z "${LOOPBACK_INSIDE:-}" ]; then
  # shellcheck disable=SC2016
  LOOPBACK_INSIDE=yes exec unshare --mount --uts sh -c 'hostname localhost && exec "$0" "$@"' "$0" "$@"
fi
unset LOOPBACK_INSIDE

# A package's own services would listen on every address: a policy that denies starting them, while they are installed.
install_missing() {
  local missing=()
  command -v munged >/dev/null || missing+=(munge)
  command -v slurmctld >/dev/null && command -v slurmd >/dev/null || missing+=(slurm-wlm)
  command -v ss >/dev/null || missing+=(iproute2)
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  if ! install_quietly "${missing[@]}" >"$folder/apt.log" 2>&1; then
    tail -n 20 "$folder/apt.log" >&2
    refuse "apt-get did not install ${missing[*]}"
  fi
}

install_quietly() {
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends "$@"
}

free_port() {  # the first port from $1 on where nothing listens
  local port=$1
  while ss -Hltn | grep -q ":$port "; do port=$((port + 1)); done
  echo "$port"
}

configure() {
  local machine cpus memory gpus=${LOOPBACK_GPUS:-} device path port
  machine=$(slurmd -C | head -n 1)
  cpus=$(sed -E 's/.*CPUs=([0-9]+).*/\1/' <<<"$machine")
  memory=$(sed -E 's/.*RealMemory=([0-9]+).*/\1/' <<<"$machine")
  port=$(free_port 6817)
  [ -n "$gpus" ] || gpus=$(find /dev -maxdepth 1 -name 'nvidia[0-9]*' | wc -l)
  # EnforcePartLimits: what the node cannot hold is refused and does not wait for ever. MinJobAge: squeue must still
  # know a finished job when Snakemake asks. OverMemoryKill: the limit holds without cgroups.
  cat >"$SLURM_CONF" <<END
ClusterName=loopback
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$(free_port $((port + 1)))
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=UsePss,OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=$((memory / cpus))
EnforcePartLimits=ALL
MinJobAge=86400
KillWait=5
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
GresTypes=gpu
NodeName=localhost NodeAddr=127.0.0.1 ${machine#* } State=UNKNOWN $([ "$gpus" -eq 0 ] || echo "Gres=gpu:$gpus")
PartitionName=debug Nodes=localhost Default=YES MaxTime=INFINITE State=UP
END
  for ((device = 0; device < gpus; device++)); do
    if [ -n "${LOOPBACK_GPUS:-}" ]; then path=$folder/gpu$device; : >"$path"; else path=/dev/nvidia$device; fi
    echo "NodeName=localhost Name=gpu File=$path"
  done >"$folder/gres.conf"
}

launch() {
  "$@" 2>>"$folder/$1.log" || { tail -n 5 "$folder/$1.log" >&2; refuse "$1 did not start: its last lines stand above"; }
}

start() {
  mkdir -p "$folder/state" "$folder/spool"
  (umask 077 && dd if=/dev/urandom of="$folder/munge.key" bs=128 count=1 status=none)
  launch munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munged.seed"
  launch slurmctld -f "$SLURM_CONF"
  launch slurmd -N localhost -f "$SLURM_CONF"
}

wait_until_idle() {
  local left=60
  until [ "$(sinfo -h -o %T 2>/dev/null)" = idle ]; do
    left=$((left - 1))
    if [ "$left" -eq 0 ]; then
      tail -n 5 "$folder"/munged.log "$folder"/slurmctld.log "$folder"/slurmd.log >&2
      refuse "the node is not idle after 30 seconds; sinfo says: $(sinfo -h -o %T 2>&1)"
    fi
    sleep 0.5
  done
}

listen_on_loopback_only() {
  local elsewhere
  elsewhere=$(ss -Hltnp | grep -E '"(slurmctld|slurmd|munged)"' | awk '$4 !~ /^127\./' || true)
  [ -z "$elsewhere" ] || refuse "a daemon listens on more than 127.0.0.1: $elsewhere"
}

stop() {
  local status=$? daemon left=40
  trap - EXIT INT TERM
  [ -z "$policy" ] || rm -f "$policy"
  if [ -e "$folder/slurmd.pid" ]; then
    squeue -h -o %A 2>/dev/null | xargs -r scancel 2>/dev/null || true
    while [ "$left" -gt 0 ] && [ -n "$(squeue -h 2>/dev/null)" ]; do left=$((left - 1)); sleep 0.5; done
  fi
  for daemon in slurmd slurmctld munged; do
    if [ -s "$folder/$daemon.pid" ]; then
      kill "$(cat "$folder/$daemon.pid")" 2>/dev/null || true
      for _ in 1 2 3 4 5 6 7 8 9 10; do [ ! -e "$folder/$daemon.pid" ] || sleep 0.5; done
    fi
  done
  if [ -n "${LOOPBACK_FOLDER:-}" ]; then
    say "stopped; its logs are in $folder"
  else
    rm -rf "$folder"
    say "stopped"
  fi
  exit "$status"
}

if [ -n "${LOOPBACK_FOLDER:-}" ]; then
  mkdir -p "$LOOPBACK_FOLDER"
  folder=$(cd "$LOOPBACK_FOLDER" && pwd)
  [ -z "$(ls -A "$folder")" ] || refuse "LOOPBACK_FOLDER=$LOOPBACK_FOLDER is not empty"
else
  folder=$(mktemp -d -t slurm-loopback.XXXXXX)
fi
chmod 755 "$folder"  # the user who called sudo reads the configuration and the socket; the key is root's alone
export SLURM_CONF=$folder/slurm.conf
policy=  # a file that is ours to remove
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

install_missing
mkdir -p /etc/slurm
mount --bind "$folder" /etc/slurm
configure
start
wait_until_idle
listen_on_loopback_only
say "SLURM is up on 127.0.0.1: $(sinfo -h -o '%c CPUs, %m MB, partition %P, generic resources %G')"
say "elsewhere: SLURM_CONF=$SLURM_CONF squeue"
if [ -n "${SUDO_USER:-}" ]; then runuser -u "$SUDO_USER" -- "$@"; else "$@"; fi
