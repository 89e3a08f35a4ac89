package interop

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
)

// sharedRows is a client of DynamoDB by which dynamolock writes its leases in milliseconds, as leasehold and the AWS lock client for
// Java do, and reads them so.
type sharedRows struct{ *dynamodb.Client }

func (s sharedRows) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	out, err := s.Client.GetItem(ctx, in, options...)
	if err != nil {
		return nil, err
	}
	for name, value := range out.Item {
		switch name {
		case "ownerName", "recordVersionNumber", "isReleased", "data":
		case "leaseDuration":
			if text, is := value.(*types.AttributeValueMemberS); is && !strings.HasSuffix(text.Value, "s") {
				out.Item[name] = &types.AttributeValueMemberS{Value: text.Value + "ms"}
			}
		default:
			delete(out.Item, name) // dynamolock would write it again later, such as a token that is old by then
		}
	}
	return out, nil
}

func (s sharedRows) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	in.Item["leaseDuration"] = milliseconds(in.Item["leaseDuration"])
	return s.Client.PutItem(ctx, in, options...)
}

func (s sharedRows) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	for alias, name := range in.ExpressionAttributeNames {
		set := regexp.MustCompile(alias + ` = (:\w+)`).FindStringSubmatch(*in.UpdateExpression)
		if name == "leaseDuration" && set != nil {
			in.ExpressionAttributeValues[set[1]] = milliseconds(in.ExpressionAttributeValues[set[1]])
		}
	}
	return s.Client.UpdateItem(ctx, in, options...)
}

func milliseconds(value types.AttributeValue) types.AttributeValue {
	if text, is := value.(*types.AttributeValueMemberS); is {
		if length, err := time.ParseDuration(text.Value); err == nil {
			return &types.AttributeValueMemberS{Value: strconv.FormatInt(length.Milliseconds(), 10)}
		}
	}
	return value
}

// sharedTable is one that clients of both libraries use.
type sharedTable struct {
	t    *testing.T
	name string
	sdk  *dynamodb.Client
	ours leasehold.DynamoDB
}

func startTable(t *testing.T) sharedTable {
	t.Helper()
	facts := testserver.Start(t, "dynamodb", "table")
	at, err := url.Parse(facts["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	id, region, endpoint := facts["accessKeyId"].(string), at.Query().Get("region"), at.Query().Get("endpoint")
	sdk := dynamodb.New(dynamodb.Options{
		Region: region, BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: id, SecretAccessKey: "secret"}, nil
		}),
	})
	return sharedTable{t, at.Host, sdk, leasehold.DynamoDB{
		Table: at.Host, Region: region, Endpoint: endpoint,
		Credentials: func(context.Context) (leasehold.AWSCredentials, error) {
			return leasehold.AWSCredentials{AccessKeyID: id, SecretAccessKey: "secret"}, nil
		},
	}}
}

// theirs makes a client of dynamolock.
func (s sharedTable) theirs(db dynamolock.DynamoDBClient, options ...dynamolock.ClientOption) *dynamolock.Client {
	s.t.Helper()
	options = append([]dynamolock.ClientOption{
		dynamolock.WithOwnerName("their worker"), dynamolock.WithLeaseDuration(20 * time.Second), dynamolock.WithHeartbeatPeriod(time.Second),
	}, options...)
	client, err := dynamolock.New(db, s.name, options...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

// row has the attributes of a lock that are texts.
func (s sharedTable) row(name string) map[string]string {
	s.t.Helper()
	key := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: name}}
	out, err := s.sdk.GetItem(s.t.Context(), &dynamodb.GetItemInput{TableName: &s.name, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		s.t.Fatal(err)
	}
	texts := map[string]string{}
	for name, value := range out.Item {
		if text, is := value.(*types.AttributeValueMemberS); is {
			texts[name] = text.Value
		}
	}
	return texts
}

// By itself, neither library reads how long a lease of the other one is, so that neither takes what the other one has, or has left.
func TestRowsOfDynamolockAreTakenForNoLocksAndOursNeither(t *testing.T) {
	t.Parallel()
	table := startTable(t)
	locks, theirs := client(t, table.ours), table.theirs(table.sdk)
	refuses := func() {
		t.Helper()
		_, err := locks.Lock(t.Context(), "theirs", leasehold.Wait(10*time.Second))
		if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "dynamolock") {
			t.Errorf("%v", err)
		}
	}
	lock, err := theirs.AcquireLockWithContext(t.Context(), "theirs")
	if err != nil {
		t.Fatal(err)
	}
	if got := table.row("theirs")["leaseDuration"]; got != "20s" {
		t.Errorf("its lease is %q", got)
	}
	refuses()
	if _, err := theirs.ReleaseLock(lock); err != nil {
		t.Fatal(err)
	}
	refuses()
	// A worker that was changed takes over from one that was not, and from then on both of the others read the row so.
	changed := table.theirs(sharedRows{table.sdk})
	if lock, err = changed.AcquireLockWithContext(t.Context(), "theirs"); err != nil {
		t.Fatal(err)
	}
	if _, err := changed.ReleaseLock(lock); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"theirs", "ours"} {
		lease, err := locks.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		refused := func() {
			t.Helper()
			if _, err := theirs.AcquireLockWithContext(t.Context(), name); err == nil || !strings.Contains(err.Error(), "cannot parse lease duration") {
				t.Errorf("%v", err)
			}
		}
		refused()
		if err := lease.Check(0); err != nil {
			t.Error(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		refused()
	}
}

func TestDynamolockExcludesOursAndIsExcludedOnSharedRows(t *testing.T) {
	t.Parallel()
	table := startTable(t)
	locks, theirs := client(t, table.ours, leasehold.Label("our worker")), table.theirs(sharedRows{table.sdk})
	lock, err := theirs.AcquireLockWithContext(t.Context(), name, dynamolock.WithData([]byte("their page")), dynamolock.ReplaceData())
	if err != nil {
		t.Fatal(err)
	}
	first := table.row(name)
	if first["leaseDuration"] != "20000" {
		t.Errorf("%v", first)
	}
	// A renewal of theirs is read as well.
	if err := theirs.SendHeartbeat(lock); err != nil {
		t.Error(err)
	}
	if now := table.row(name); now["leaseDuration"] != "20000" || now["recordVersionNumber"] == first["recordVersionNumber"] {
		t.Errorf("%v after %v", now, first)
	}
	_, err = locks.Lock(t.Context(), name, leasehold.Wait(0))
	var busy *leasehold.Error
	if !errors.As(err, &busy) || busy.Kind != leasehold.ErrBusy {
		t.Fatalf("%v", err)
	}
	if who := busy.Holder; !who.Foreign || who.Owner != "their worker" || string(who.Data) != "their page" || who.Token != 0 {
		t.Errorf("%+v", who)
	}
	if _, err := theirs.ReleaseLock(lock); err != nil {
		t.Fatal(err)
	}

	lease, err := locks.Lock(t.Context(), name, leasehold.TTL(30*time.Second), leasehold.Data([]byte("our page")))
	if err != nil {
		t.Fatal(err)
	}
	var refused *dynamolock.LockNotGrantedError
	if _, err := theirs.AcquireLockWithContext(t.Context(), name, dynamolock.FailIfLocked()); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	seen, err := theirs.GetWithContext(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if seen.OwnerName() != "our worker" || string(seen.Data()) != "our page" || len(seen.AdditionalAttributes()) != 0 {
		t.Errorf("%s, %q, %v", seen.OwnerName(), seen.Data(), seen.AdditionalAttributes())
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	// It replaces the row, and the token with it.
	if lock, err = theirs.AcquireLockWithContext(t.Context(), name, dynamolock.FailIfLocked()); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.ReleaseLock(lock, dynamolock.WithDeleteLock(true)); err != nil {
		t.Fatal(err)
	}
	growsAfter(t, locks, lease)
}

// growsAfter takes the lock once more, whose token has to be larger.
func growsAfter(t *testing.T, locks *leasehold.Client, lease *leasehold.Lease) {
	t.Helper()
	next, err := locks.Lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestASilentHolderOfOursIsSucceededByDynamolock(t *testing.T) {
	t.Parallel()
	table := startTable(t)
	locks, theirs := client(t, table.ours), table.theirs(sharedRows{table.sdk})
	lease, err := locks.Lock(t.Context(), name, leasehold.TTL(3*time.Second), leasehold.RenewEvery(0))
	if err != nil {
		t.Fatal(err)
	}
	patience := []dynamolock.AcquireLockOption{
		dynamolock.WithAdditionalTimeToWaitForLock(time.Minute), dynamolock.WithRefreshPeriod(50 * time.Millisecond),
	}
	lock, err := theirs.AcquireLockWithContext(t.Context(), name, patience...)
	if err != nil {
		t.Fatal(err)
	}
	// A holder stops believing before anybody else may begin.
	if lease.Remaining() != 0 {
		t.Error("two at once")
	}
	if err := lease.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("%v", err)
	}
	if err := theirs.SendHeartbeat(lock); err != nil {
		t.Errorf("it is not theirs: %v", err)
	}
	if _, err := theirs.ReleaseLock(lock); err != nil {
		t.Error(err)
	}
	growsAfter(t, locks, lease)
}

func TestASilentHolderOfDynamolockIsSucceededByOurs(t *testing.T) {
	t.Parallel()
	table := startTable(t)
	locks, live := client(t, table.ours), table.theirs(sharedRows{table.sdk})
	silent := table.theirs(sharedRows{table.sdk}, dynamolock.WithLeaseDuration(3*time.Second), dynamolock.DisableHeartbeat())
	lock, err := silent.AcquireLockWithContext(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.AcquireLockWithContext(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	lease, err := locks.Lock(t.Context(), name, leasehold.TTL(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if !lock.IsExpired() {
		t.Error("two at once")
	}
	if err := silent.SendHeartbeat(lock); err == nil {
		t.Error("it renews what is not its own any more")
	}
	if done, err := silent.ReleaseLock(lock); err == nil || done {
		t.Error("it frees what is not its own any more")
	}
	if err := lease.Check(0); err != nil {
		t.Error(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	// One that goes on is not succeeded, however long that takes: it is renewed several times meanwhile.
	if _, err := locks.Lock(t.Context(), "another", leasehold.Wait(3*time.Second)); !errors.Is(err, leasehold.ErrTimeout) {
		t.Errorf("%v", err)
	}
}

func TestNoIncrementIsLostBesideDynamolock(t *testing.T) {
	t.Parallel()
	table := startTable(t)
	const workers, rounds = 2, 10
	count := 0
	var all sync.WaitGroup
	for range workers {
		locks, theirs := client(t, table.ours), table.theirs(sharedRows{table.sdk})
		for _, peer := range []peer{
			{"ours", func(ctx context.Context) (func() error, error) {
				lease, err := locks.Lock(ctx, name, leasehold.Wait(0))
				return func() error { return lease.Release(ctx) }, err
			}},
			{"dynamolock", func(ctx context.Context) (func() error, error) {
				lock, err := theirs.AcquireLockWithContext(ctx, name, dynamolock.FailIfLocked(), dynamolock.WithRefreshPeriod(time.Millisecond))
				return func() error {
					_, err := theirs.ReleaseLockWithContext(ctx, lock)
					return err
				}, err
			}},
		} {
			all.Go(func() {
				for range rounds {
					release, err := peer.take(t.Context())
					for err != nil {
						var busy *dynamolock.LockNotGrantedError
						if !errors.Is(err, leasehold.ErrBusy) && !errors.As(err, &busy) {
							t.Errorf("%s: %v", peer.name, err)
							return
						}
						time.Sleep(time.Millisecond)
						release, err = peer.take(t.Context())
					}
					// The race detector sees two at once.
					count++
					if err := release(); err != nil {
						t.Errorf("%s: %v", peer.name, err)
					}
				}
			})
		}
	}
	all.Wait()
	if count != 2*workers*rounds {
		t.Errorf("%d increments", count)
	}
}
