//! Stores behind HTTP: how each writes its requests and reads the responses. All the rest is the same for all of them.

use alloc::string::String;
use alloc::vec::Vec;

use super::keys::{Carried, Keys, ServerClock};
use super::node::{Dynamodb, Etcd, RedisHttp, authorization, pair};
use super::objects::Objects;
use super::store::{Access, AccountKey, Credentials};
use crate::exchange::{Exchange, Repeat};
use crate::http::HttpResponse;
use crate::objects::{Right, Signed};
use crate::redis::{Command, of_one_server, refuses_credentials};
use crate::resp::Value;
use crate::sigv4::Headers;
use crate::{dynamodb, etcd, objects, rest};
use leasehold_core::op::Outcome;
use leasehold_core::time::Now;

pub(super) const CLUSTER: &str =
    "the server is a node of a Redis Cluster, and the name belongs to another node: name a single server";

/// One store behind HTTP.
pub(super) trait Web {
    /// Its exchanges.
    type Exchange: Exchange;

    /// Tells if requests carry credentials.
    fn access(&self) -> Access;

    /// Writes a request, by the server's clock; `None` where it cannot be written with these credentials.
    fn write(&mut self, ask: &Ask<Self>, given: Option<&Credentials>, unix_ms: u64) -> Option<Written>;

    /// Reads a response.
    ///
    /// # Errors
    /// The outcome of every operation of the request, where the response holds no answer.
    fn read(&self, response: HttpResponse, given: Option<&Credentials>) -> Result<Heard<Self>, Outcome>;

    /// Something to do before the request is sent once more.
    fn repeat(&self, response: &HttpResponse, given: Option<&Credentials>) -> Option<Repeat>;

    /// Tells if credentials that were refused are of no more use, so that a request waits for others. Of those that do not
    /// expire, a refusal says that the server is right.
    fn are_over(&self, _refused: &Credentials) -> bool {
        false
    }

    fn memory(&mut self) -> &mut Memory<Self>;
}

pub(super) type Ask<W> = <<W as Web>::Exchange as Exchange>::Ask;
pub(super) type Heard<W> = <<W as Web>::Exchange as Exchange>::Heard;
pub(super) type Memory<W> = <<W as Web>::Exchange as Exchange>::Memory;

/// A request over HTTP, ready to be sent.
pub(super) struct Written {
    pub(super) method: &'static str,
    pub(super) url: String,
    pub(super) headers: Headers,
    pub(super) body: Vec<u8>,
}

/// A request with the credentials of this moment; `None` where there are none that serve.
pub(super) fn write<W: Web>(
    web: &mut W,
    ask: &Ask<W>,
    keys: &mut Keys,
    clock: &ServerClock,
    now: Now,
) -> Option<(Written, Option<Carried>)> {
    let carried = match web.access() {
        Access::Anonymous => None,
        Access::WithCredentials => Some(keys.serving(now.monotonic)?),
    };
    let written = web.write(ask, given(carried.as_ref()), clock.unix_ms(now))?;
    Some((written, carried))
}

/// Learns of the credentials and of the clock from a response. Returns the reason to send the request once more, if there
/// is one and it may help.
pub(super) fn learn<W: Web>(
    web: &W,
    response: &HttpResponse,
    carried: Option<&Carried>,
    keys: &mut Keys,
    clock: &mut ServerClock,
    now: Now,
) -> Option<Repeat> {
    let repeat = web.repeat(response, given(carried))?;
    match (repeat, carried) {
        (Repeat::ServerTime(shown), _) => clock.set(shown, now),
        (Repeat::FreshCredentials, Some(carried)) if web.are_over(&carried.credentials) => {
            keys.refuse(carried.generation);
        }
        (Repeat::FreshCredentials, Some(carried)) => {
            keys.doubt(carried.generation);
            return keys.replace(carried).then_some(repeat);
        }
        (Repeat::FreshCredentials, None) => return None,
    }
    Some(repeat)
}

pub(super) fn given(carried: Option<&Carried>) -> Option<&Credentials> {
    carried.map(|carried| &*carried.credentials)
}

impl Web for RedisHttp {
    type Exchange = crate::redis::Exchange;

    fn access(&self) -> Access {
        self.access
    }

    fn write(&mut self, command: &Command, given: Option<&Credentials>, _unix_ms: u64) -> Option<Written> {
        let request = rest::request(self.dialect, core::slice::from_ref(command), None);
        let authorization = given.and_then(authorization).map(|value| ("authorization", value));
        let headers = Headers::new(request.headers.into_iter().chain(authorization).collect());
        Some(Written { method: "POST", url: self.endpoint.url(&request.path), headers, body: request.body })
    }

    fn read(&self, response: HttpResponse, given: Option<&Credentials>) -> Result<Value, Outcome> {
        self.judge(&response, given).and_then(|reply| of_one_server(reply, CLUSTER))
    }

    /// Where the server rejects the credentials or their rights, nothing was done.
    fn repeat(&self, response: &HttpResponse, given: Option<&Credentials>) -> Option<Repeat> {
        let is_refusal = match self.judge(response, given) {
            Ok(reply) => reply.as_error().is_some_and(refuses_credentials),
            Err(_) => matches!(response.status, 401 | 403),
        };
        is_refusal.then_some(Repeat::FreshCredentials)
    }

    fn memory(&mut self) -> &mut () {
        &mut self.memory
    }
}

impl RedisHttp {
    fn judge(&self, response: &HttpResponse, given: Option<&Credentials>) -> Result<Value, Outcome> {
        let head = rest::Head {
            status: response.status,
            content_type: response.header("content-type"),
            location: response.header("location"),
        };
        let judge = |secrets: &[&str]| rest::judge_without(self.dialect, &head, &response.body, secrets);
        match given {
            Some(Credentials::Token(bearer)) => judge(&[&bearer.token]),
            Some(Credentials::Password(login)) => judge(&[&login.password, &pair(login)]),
            Some(Credentials::Aws(_) | Credentials::AccountKey(_) | Credentials::AccessSignature(_)) | None => {
                judge(&[])
            }
        }
    }
}

impl Web for Dynamodb {
    type Exchange = dynamodb::Exchange;

    fn access(&self) -> Access {
        Access::WithCredentials
    }

    fn write(&mut self, request: &dynamodb::Request, given: Option<&Credentials>, unix_ms: u64) -> Option<Written> {
        let Some(Credentials::Aws(aws)) = given else { return None };
        let headers = self.signer.sign(request, self.endpoint.host(), &self.region, &aws.keys, unix_ms);
        Some(Written { method: "POST", url: self.endpoint.url("/"), headers, body: request.body.clone() })
    }

    fn read(&self, response: HttpResponse, _given: Option<&Credentials>) -> Result<HttpResponse, Outcome> {
        Ok(response)
    }

    fn repeat(&self, response: &HttpResponse, _given: Option<&Credentials>) -> Option<Repeat> {
        self.codec.repeat(response)
    }

    fn are_over(&self, _refused: &Credentials) -> bool {
        true
    }

    fn memory(&mut self) -> &mut () {
        &mut self.memory
    }
}

impl Web for Etcd {
    type Exchange = etcd::Exchange;

    fn access(&self) -> Access {
        self.access
    }

    fn write(&mut self, request: &etcd::Request, given: Option<&Credentials>, _unix_ms: u64) -> Option<Written> {
        let token = match given {
            Some(Credentials::Token(bearer)) => Some(("authorization", bearer.token.clone())),
            Some(
                Credentials::Aws(_)
                | Credentials::Password(_)
                | Credentials::AccountKey(_)
                | Credentials::AccessSignature(_),
            )
            | None => None,
        };
        let headers = core::iter::once(("content-type", "application/json".into())).chain(token);
        let headers = Headers::new(headers.collect());
        Some(Written { method: "POST", url: self.endpoint.url(request.path), headers, body: request.body.clone() })
    }

    fn read(&self, response: HttpResponse, _given: Option<&Credentials>) -> Result<HttpResponse, Outcome> {
        Ok(response)
    }

    fn repeat(&self, response: &HttpResponse, _given: Option<&Credentials>) -> Option<Repeat> {
        self.codec.repeat(response)
    }

    fn memory(&mut self) -> &mut etcd::Memory {
        &mut self.memory
    }
}

impl Web for Objects {
    type Exchange = objects::Exchange;

    fn access(&self) -> Access {
        self.access
    }

    fn write(&mut self, request: &objects::Request, given: Option<&Credentials>, unix_ms: u64) -> Option<Written> {
        let right = match given {
            Some(Credentials::Aws(aws)) => Right::Aws { keys: &aws.keys, region: &self.region },
            Some(Credentials::Token(bearer)) => Right::Token(&bearer.token),
            Some(Credentials::AccountKey(AccountKey { key })) => Right::AccountKey { account: &self.account, key },
            Some(Credentials::AccessSignature(signature)) => Right::AccessSignature(&signature.query),
            Some(Credentials::Password(_)) | None => Right::Nobody,
        };
        let (host, signer) = (self.endpoint.host(), &mut self.signer);
        let Signed { target, headers, body } = self.codec.signed(request.clone(), host, right, signer, unix_ms)?;
        Some(Written { method: request.method.name(), url: self.endpoint.url(&target), headers, body })
    }

    fn read(&self, response: HttpResponse, _given: Option<&Credentials>) -> Result<HttpResponse, Outcome> {
        Ok(response)
    }

    fn repeat(&self, response: &HttpResponse, _given: Option<&Credentials>) -> Option<Repeat> {
        self.codec.repeat(response)
    }

    fn are_over(&self, refused: &Credentials) -> bool {
        match refused {
            Credentials::Token(_) | Credentials::AccessSignature(_) => true,
            Credentials::Aws(aws) => aws.keys.session_token.is_some(),
            Credentials::AccountKey(_) | Credentials::Password(_) => false,
        }
    }

    fn memory(&mut self) -> &mut objects::Memory {
        &mut self.memory
    }
}
