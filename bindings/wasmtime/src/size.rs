//! About how many bytes an argument takes in the component: what is refused here costs it nothing.

use crate::Occurrence;
use crate::client::{HttpHeader, Input, Response, Row};
use crate::ops::{
    Applied, AppliedOutcome, Completion, Denial, Fault, Holding, NotAppliedOutcome, Outcome, Refusal, Seen,
};
use crate::stores::{Credentials, RedisCommand, SqlValue, Store};
use crate::types::{Config, LockOptions};

/// For each element of a list, whatever its kind.
pub(crate) const ELEMENT: usize = 256;

pub(crate) trait Size {
    fn size(&self) -> usize;
}

/// All elements of a list, and what the list itself takes.
pub(crate) fn total<T: Size>(items: &[T]) -> usize {
    items.iter().map(|item| ELEMENT + item.size()).sum()
}

impl<T: Size> Size for Option<T> {
    fn size(&self) -> usize {
        self.as_ref().map_or(0, T::size)
    }
}

impl Size for Vec<u8> {
    fn size(&self) -> usize {
        self.len()
    }
}

impl Size for String {
    fn size(&self) -> usize {
        self.len()
    }
}

impl Size for Config {
    fn size(&self) -> usize {
        self.nodes.len() * ELEMENT + self.quorum.as_ref().map_or(0, |quorum| quorum.id.len())
    }
}

impl Size for Occurrence {
    fn size(&self) -> usize {
        [&self.key, &self.at, &self.tz, &self.cron].into_iter().map(Size::size).sum()
    }
}

impl Size for LockOptions {
    fn size(&self) -> usize {
        self.owner.len() + self.data.size()
    }
}

impl Size for Input {
    fn size(&self) -> usize {
        match self {
            Self::Acquire(acquire) => acquire.resource.len() + acquire.options.size(),
            Self::Response(reply) => reply.response.size(),
            Self::Notified(hint) => hint.resource.len(),
            Self::Subscribed(hint) => hint.resource.len(),
            Self::SetCredentials(new) => new.credentials.size(),
            Self::NodeVotes(vote) => vote.loss.size(),
            Self::Reseed(new) => new.seed.len(),
            Self::Release(_) | Self::Finish(_) | Self::DeclareLost(_) | Self::CredentialsRenewed(_) | Self::Close => 0,
        }
    }
}

impl Size for Response {
    fn size(&self) -> usize {
        match self {
            Self::Outcomes(outcomes) => total(&outcomes.outcomes),
            Self::HttpResponse(response) => total(&response.headers) + response.body.len(),
            Self::RedisReplies(replies) => replies.replies.len(),
            Self::Rows(rows) => total(&rows.rows),
            Self::ServerError(error) => error.code.len() + error.message.len(),
            Self::NotSent(fault) | Self::Unknown(fault) => fault.size(),
        }
    }
}

impl Size for Row {
    fn size(&self) -> usize {
        total(&self.columns)
    }
}

impl Size for SqlValue {
    fn size(&self) -> usize {
        match self {
            Self::Null | Self::Number(_) | Self::Truth(_) => 0,
            Self::Text(it) => it.value.len(),
            Self::Bytes(it) => it.value.len(),
        }
    }
}

impl Size for HttpHeader {
    fn size(&self) -> usize {
        self.name.len() + self.value.len()
    }
}

impl Size for Store {
    fn size(&self) -> usize {
        match self {
            Self::Operations | Self::Redis(_) => 0,
            Self::Postgres(table) => table.schema.size(),
            Self::RedisHttp(redis) => redis.url.len(),
            Self::Dynamodb(table) => {
                let key = table.sort_key.as_ref().map_or(0, |key| key.name.len() + key.value.len());
                let attributes = key + table.key.size() + table.expires.size();
                table.table.len() + table.region.len() + table.url.len() + attributes
            }
            Self::Etcd(etcd) => etcd.url.len() + etcd.prefix.size(),
            Self::Objects(objects) => {
                objects.url.len() + objects.place.len() + objects.prefix.size() + objects.region.size()
            }
        }
    }
}

impl Size for Credentials {
    fn size(&self) -> usize {
        match self {
            Self::Aws(aws) => aws.access_key_id.len() + aws.secret_access_key.len() + aws.session_token.size(),
            Self::Token(bearer) => bearer.token.len(),
            Self::Password(login) => login.user.len() + login.password.len(),
            Self::AccountKey(account) => account.key.len(),
            Self::AccessSignature(signature) => signature.query.len(),
        }
    }
}

impl Size for RedisCommand {
    fn size(&self) -> usize {
        total(&self.args)
    }
}

impl Size for Outcome {
    fn size(&self) -> usize {
        match self {
            Self::Applied(AppliedOutcome { applied }) => applied.size(),
            Self::NotApplied(NotAppliedOutcome { refusal }) => refusal.size(),
            Self::Unknown(fault) => fault.size(),
        }
    }
}

impl Size for Applied {
    fn size(&self) -> usize {
        match self {
            Self::AcquiredInDoubt(node) => node.stamp.len(),
            Self::Read(seen) => seen.size(),
            Self::Acquired(_) | Self::Renewed | Self::Released | Self::Finished | Self::Revoked | Self::Raised(_) => 0,
        }
    }
}

impl Size for Refusal {
    fn size(&self) -> usize {
        match self {
            Self::Conflict(seen) => seen.size(),
            Self::Done(completion) => completion.size(),
            Self::Throttled(fault) | Self::Unavailable(fault) | Self::NeedsCredentials(fault) => fault.size(),
            Self::Abstains(lost) => lost.stamp.size(),
            Self::Denied(denial) => denial.size(),
        }
    }
}

impl Size for Seen {
    fn size(&self) -> usize {
        self.holding.size() + self.done.size()
    }
}

impl Size for Completion {
    fn size(&self) -> usize {
        self.owner.len() + self.about.size()
    }
}

impl Size for Holding {
    fn size(&self) -> usize {
        let holder = self.holder.as_ref().map_or(0, |holder| holder.nonce.len());
        holder + self.version.len() + self.owner.size() + self.data.size()
    }
}

impl Size for Fault {
    fn size(&self) -> usize {
        self.detail.size()
    }
}

impl Size for Denial {
    fn size(&self) -> usize {
        self.detail.len()
    }
}
