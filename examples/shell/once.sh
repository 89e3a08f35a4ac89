#!/bin/sh
# A nightly job that many machines start and one does, even if some of them are late. Run: sh examples/shell/once.sh
#
# In each machine's crontab, where LEASEHOLD_STORE is redis://HOST or dynamodb://TABLE?region=REGION:
#   0 3 * * *  leasehold once --every 1d --wait 1h nightly-report -- /usr/local/bin/report
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export LEASEHOLD_STORE=sqlite:locks.db # for the processes of one machine

tonight() { leasehold once --key 2026-11-24 nightly-report -- sh -c "$1" 2> message; }

# The first machine fails: it leaves the work to the next one, which does it.
status=0
tonight 'exit 1' || status=$?
echo "first: exit status $status"
tonight 'echo "second: report written with fencing token ${LEASEHOLD_TOKEN:+set}"'

# The third comes when it is done.
tonight 'echo "never printed"'
grep -q 'done already' message && echo "third: it was done"
leasehold inspect nightly-report --key 2026-11-24 | head -n 1

# Output:
# first: exit status 1
# second: report written with fencing token set
# third: it was done
# nightly-report@2026-11-24 is done
