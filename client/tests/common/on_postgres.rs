//! Tables of locks on a PostgreSQL server, each in a schema of its own.

use leasehold::schema;
use leasehold_servers::postgres::Server;

/// The url of a new table, through a port of the server, its pooler or a proxy. Nothing that is answered may be lost in it.
pub(crate) fn new_table(server: &Server, port: u16) -> String {
    let url = bare_table(server, port);
    server.insist_on_durability(schema_of(&url));
    url
}

/// The same with nothing beside it that users do not have.
pub(crate) fn bare_table(server: &Server, port: u16) -> String {
    let schema = server.schema().name().to_owned();
    schema::create(&format!("{}?schema={schema}", server.url())).unwrap();
    format!("{}?schema={schema}", server.url_at(port))
}

/// The schema that a url names.
pub(crate) fn schema_of(url: &str) -> &str {
    let (_, parameters) = url.split_once("schema=").unwrap();
    parameters.split('&').next().unwrap()
}

/// The table that a url names.
pub(crate) fn table_of(url: &str) -> String {
    format!("{}.leasehold", schema_of(url))
}
