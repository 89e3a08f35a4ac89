package leasehold

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
	"code.invalid/leasehold/go/internal/web"
)

// AWSCredentials sign requests to AWS, and to services with its API.
type AWSCredentials struct {
	AccessKeyID, SecretAccessKey string
	// SessionToken comes with keys that expire.
	SessionToken string
	// Expires is zero for keys that do not. Others are asked for five minutes before.
	Expires time.Time
}

// A Token lets its bearer use a service.
type Token struct {
	Token string
	// Expires is zero where that is not known. Another one is asked for five minutes before.
	Expires time.Time
}

// DynamoDB is a table in DynamoDB: docs/dynamodb.md.
type DynamoDB struct {
	// Table is its name or ARN.
	Table  string
	Region string
	// Endpoint is empty for AWS itself.
	Endpoint string
	// Key is the attribute of the partition key; "key" if it is empty.
	Key string
	// SortKey is the attribute of the sort key, in a table that has one, and SortValue what our rows have there.
	SortKey, SortValue string
	// Expires is an attribute for DynamoDB's time to live; none is written if it is empty.
	Expires string
	// Credentials are asked for when they are needed, and before they expire. If it is nil, the environment has them, in the
	// variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
	Credentials func(context.Context) (AWSCredentials, error)
	// Client sends requests, if it is not nil; only its Transport counts.
	Client *http.Client
	// Plaintext allows http: to other machines.
	Plaintext bool
}

// Node is for this module itself.
func (d DynamoDB) Node() (node.Node, error) {
	at := cmp.Or(d.Endpoint, fmt.Sprintf("https://dynamodb.%s.%s", d.Region, domain(d.Region)))
	store := core.StoreDynamodb{
		Table: d.Table, Region: d.Region, URL: at, Key: unless(d.Key, ""), Expires: unless(d.Expires, ""),
		Plaintext: plaintext(d.Plaintext),
	}
	if d.SortKey != "" {
		store.SortKey = &core.SortKey{Name: d.SortKey, Value: cmp.Or(d.SortValue, "-")}
	}
	return webNode(store, !isHere(at), d.Client, aws(d.Credentials)), nil
}

// Etcd is an etcd, by its JSON gateway: docs/etcd.md.
type Etcd struct {
	// URL is http://host:2379 or https://host:2379.
	URL string
	// Prefix of the keys; "leasehold/" if it is empty.
	Prefix string
	// User and Password log in, if they are not empty.
	User, Password string
	// Client sends requests, if it is not nil; only its Transport counts.
	Client *http.Client
	// Plaintext allows the token over http: to other machines.
	Plaintext bool
}

// Node is for this module itself.
func (e Etcd) Node() (node.Node, error) {
	store := core.StoreEtcd{URL: e.URL, Prefix: unless(e.Prefix, ""), Plaintext: plaintext(e.Plaintext)}
	var credentials web.Credentials
	if e.User != "" {
		store.Access = core.AccessWithCredentials
		credentials = e.login
	}
	return webNode(store, true, e.Client, credentials), nil
}

func (e Etcd) login(ctx context.Context) (core.Credentials, error) {
	body, err := json.Marshal(map[string]string{"name": e.User, "password": e.Password})
	if err != nil {
		return nil, err
	}
	status, said, err := web.Post(ctx, e.Client, e.URL+"/v3/auth/authenticate", body)
	if err != nil {
		return nil, err
	}
	var answer struct{ Token string }
	if err := json.Unmarshal(said, &answer); err != nil || status != http.StatusOK || answer.Token == "" {
		return nil, fmt.Errorf("etcd refuses the login with status %d: check user and password", status)
	}
	return core.CredentialsToken{Token: answer.Token}, nil
}

// S3 is a bucket in Amazon S3, R2 or another service that honours If-Match: docs/objects.md.
type S3 struct {
	Bucket string
	// Region is "auto" for R2.
	Region string
	// Prefix of the objects' names; "leasehold/" if it is empty.
	Prefix string
	// Endpoint is empty for AWS itself.
	Endpoint string
	// Credentials are as in [DynamoDB].
	Credentials func(context.Context) (AWSCredentials, error)
	// Client sends requests, if it is not nil; only its Transport counts.
	Client *http.Client
	// Plaintext allows http: to other machines.
	Plaintext bool
}

// Node is for this module itself.
func (s S3) Node() (node.Node, error) {
	store := core.ObjectsStore{
		Service: core.ObjectsServiceS3, URL: s.Endpoint, Place: s.Bucket, Prefix: unless(s.Prefix, ""), Region: &s.Region,
		Access: core.AccessWithCredentials, Plaintext: plaintext(s.Plaintext),
	}
	if s.Endpoint == "" {
		host := fmt.Sprintf("s3.%s.%s", s.Region, domain(s.Region))
		// The certificate covers one label.
		if store.URL = "https://" + host; !strings.Contains(s.Bucket, ".") {
			store.URL, store.Place = "https://"+s.Bucket+"."+host, ""
		}
	}
	return webNode(core.StoreObjects(store), !isHere(store.URL), s.Client, aws(s.Credentials)), nil
}

// AzureBlob is a container in Azure Blob Storage: docs/objects.md.
type AzureBlob struct {
	Account, Container string
	// Prefix of the blobs' names; "leasehold/" if it is empty.
	Prefix string
	// Endpoint is empty for Azure itself.
	Endpoint string
	// Key is that of the account. Without it, Token is asked for when it is needed, and before it expires.
	Key   string
	Token func(context.Context) (Token, error)
	// Client sends requests, if it is not nil; only its Transport counts.
	Client *http.Client
	// Plaintext allows http: to other machines.
	Plaintext bool
}

// Node is for this module itself.
func (a AzureBlob) Node() (node.Node, error) {
	store := core.ObjectsStore{
		Service: core.ObjectsServiceAzureBlob, URL: a.Endpoint, Place: a.Account + "/" + a.Container, Prefix: unless(a.Prefix, ""),
		Access: core.AccessWithCredentials, Plaintext: plaintext(a.Plaintext),
	}
	if a.Endpoint == "" {
		store.URL, store.Place = "https://"+a.Account+".blob.core.windows.net", a.Container
	}
	credentials := bearer(a.Token)
	if a.Key != "" {
		credentials = func(context.Context) (core.Credentials, error) { return core.CredentialsAccountKey{Key: a.Key}, nil }
	}
	return webNode(core.StoreObjects(store), !isHere(store.URL), a.Client, credentials), nil
}

// GoogleStorage is a bucket in Google Cloud Storage: docs/objects.md.
type GoogleStorage struct {
	Bucket string
	// Prefix of the objects' names; "leasehold/" if it is empty.
	Prefix string
	// Endpoint is empty for Google itself.
	Endpoint string
	// Token is asked for when it is needed, and before it expires. Emulators may need none.
	Token func(context.Context) (Token, error)
	// Client sends requests, if it is not nil; only its Transport counts.
	Client *http.Client
	// Plaintext allows http: to other machines.
	Plaintext bool
}

// Node is for this module itself.
func (g GoogleStorage) Node() (node.Node, error) {
	store := core.ObjectsStore{
		Service: core.ObjectsServiceGCS, URL: cmp.Or(g.Endpoint, "https://storage.googleapis.com"), Place: g.Bucket,
		Prefix: unless(g.Prefix, ""), Plaintext: plaintext(g.Plaintext),
	}
	var credentials web.Credentials
	if g.Token != nil {
		store.Access = core.AccessWithCredentials
		credentials = bearer(g.Token)
	}
	return webNode(core.StoreObjects(store), !isHere(store.URL), g.Client, credentials), nil
}

func aws(given func(context.Context) (AWSCredentials, error)) web.Credentials {
	if given == nil {
		given = fromEnvironment
	}
	return func(ctx context.Context) (core.Credentials, error) {
		keys, err := given(ctx)
		if err != nil {
			return nil, err
		}
		return core.CredentialsAWS{
			AccessKeyID: keys.AccessKeyID, SecretAccessKey: keys.SecretAccessKey, SessionToken: unless(keys.SessionToken, ""),
			ExpiresUnixMs: instant(keys.Expires),
		}, nil
	}
}

func fromEnvironment(context.Context) (AWSCredentials, error) {
	keys := AWSCredentials{
		AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
	}
	if keys.AccessKeyID == "" || keys.SecretAccessKey == "" {
		return keys, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set: set them, or give Credentials")
	}
	return keys, nil
}

func bearer(given func(context.Context) (Token, error)) web.Credentials {
	return func(ctx context.Context) (core.Credentials, error) {
		if given == nil {
			return nil, errors.New("the store has neither a key nor a Token: give one")
		}
		token, err := given(ctx)
		if err != nil {
			return nil, err
		}
		return core.CredentialsToken{Token: token.Token, ExpiresUnixMs: instant(token.Expires)}, nil
	}
}

func instant(at time.Time) *uint64 {
	if at.IsZero() {
		return nil
	}
	ms := uint64(max(at.UnixMilli(), 0))
	return &ms
}

func plaintext(allowed bool) *core.Plaintext {
	is := core.PlaintextRefused
	if allowed {
		is = core.PlaintextAllowed
	}
	return &is
}

// domain is that of AWS in a region.
func domain(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// isHere: emulators on this machine lose everything when they restart.
func isHere(at string) bool {
	address, err := url.Parse(at)
	if err != nil {
		return false
	}
	host := address.Hostname()
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
