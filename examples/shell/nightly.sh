#!/bin/sh
# A nightly job that many machines start and one runs. Run: sh examples/shell/nightly.sh
#
# In each machine's crontab, where LEASEHOLD_STORE is redis://HOST or dynamodb://TABLE?region=REGION:
#   0 3 * * *  leasehold exec --no-wait --busy-status 0 nightly-report -- /usr/local/bin/report
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export LEASEHOLD_STORE=sqlite:locks.db # for the processes of one machine

# The first machine gets the lock, and works until a file says that it is done.
leasehold exec nightly-report -- sh -c '
  touch started
  until [ -e done ]; do sleep 0.1; done
  echo "first: report written with fencing token ${LEASEHOLD_TOKEN:+set}"
' &
until [ -e started ]; do sleep 0.1; done

# The second comes too late: 75 says that the lock is held.
status=0
leasehold exec --no-wait nightly-report -- echo "never printed" 2> message || status=$?
echo "second: exit status $status"
leasehold inspect nightly-report > holder && echo "second: the lock is held"

touch done
wait
leasehold inspect nightly-report > holder || echo "first: the lock is released"

# Output:
# second: exit status 75
# second: the lock is held
# first: report written with fencing token set
# first: the lock is released
