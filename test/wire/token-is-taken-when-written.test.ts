import { describe, expect, it } from 'vitest';
import { FakeBearer, FIRST, SECOND } from './fake-bearer.ts';
import { answer, get, ok, post } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, inTurn, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

/** A source whose token ends, or is renewed, right after it was asked for: while the connection is being made. */
class Fleeting extends FakeBearer {
  readonly #next: (string | undefined)[];

  constructor(next: (string | undefined)[], obtain?: () => Promise<string>) {
    super(obtain === undefined ? {} : { obtain });
    this.#next = next;
  }

  override current(): string | undefined {
    const held = this.held;
    if (this.#next.length > 0) this.held = this.#next.shift();
    return held;
  }
}

const THIRD = 'Bearer wire-token-3';

describe.each([
  ['GET', get('/')],
  ['POST', post('/', 'body')],
])('a token that expires while the connection is being made is not sent: %s', (_, bytes) => {
  it('a new one is requested and sent', async () => {
    const upstream = await startUpstream(answering(ok('fine')));
    const bearer = new Fleeting([undefined], async () => SECOND);
    const sidecar = await startSidecar({ upstream, bearer });

    expect((await sidecar.exchange(bytes)).body).toBe('fine');

    expect(upstream.requests.map(({ head }) => head.values('authorization'))).toEqual([[SECOND]]);
    expect(upstream.connections).toHaveLength(1);
  });

  it('one renewed meanwhile is sent', async () => {
    const upstream = await startUpstream(answering(ok('fine')));
    const sidecar = await startSidecar({ upstream, bearer: new Fleeting([SECOND]) });

    expect((await sidecar.exchange(bytes)).body).toBe('fine');

    expect(upstream.requests.map(({ head }) => head.values('authorization'))).toEqual([[SECOND]]);
  });

  it('without another token nothing is sent', async () => {
    const upstream = await startUpstream(answering(ok('must not be reached')));
    const sidecar = await startSidecar({ upstream, bearer: new Fleeting([undefined]) });

    expectProblem(await sidecar.exchange(bytes), 'token_unavailable');

    expect(upstream.requests).toEqual([]);
    await sidecar.idle();
  });

  it('without another token the request is sent without one if the route allows it', async () => {
    const upstream = await startUpstream(answering(ok('public')));
    const sidecar = await startSidecar({
      upstream,
      bearer: new Fleeting([undefined]),
      route: { whenTokenUnavailable: 'passthrough' },
    });

    expect((await sidecar.exchange(bytes)).body).toBe('public');

    expect(upstream.requests.map(({ head }) => head.values('authorization'))).toEqual([[]]);
  });
});

it('a token that expires while a replay waits for its connection is not sent', async () => {
  const upstream = await startUpstream(
    inTurn(answering(answer(401, '', 'Connection: close')), answering(ok('fine'))),
  );
  const bearer = new FakeBearer({
    replace: async () => {
      // Asked for once the connection of the replay stands.
      setImmediate(() => {
        bearer.held = undefined;
      });
      return SECOND;
    },
    obtain: async () => THIRD,
  });
  const sidecar = await startSidecar({ upstream, bearer });

  expect((await sidecar.exchange(get('/'))).body).toBe('fine');

  expect(upstream.requests.map(({ head }) => head.values('authorization'))).toEqual([[FIRST], [THIRD]]);
});

it('a token that expires before a lost request is sent again is not sent', async () => {
  const bearer = new FakeBearer({ obtain: async () => SECOND });
  const upstream = await startUpstream(
    inTurn(
      answering(ok('warm')),
      (arrived) => {
        bearer.held = undefined;
        arrived.connection.destroy();
      },
      answering(ok('fine')),
    ),
  );
  const sidecar = await startSidecar({ upstream, bearer });
  const client = await sidecar.connect();
  await client.send(get('/warm')).response();

  expect((await client.send(get('/')).response()).body).toBe('fine');

  const sent = upstream.requests.map(({ head }) => head.value('authorization'));
  expect(sent).toEqual([FIRST, FIRST, SECOND]);
});

it.each(['TRACE', 'trace'])('%s carries no token and waits for none', async (method) => {
  const upstream = await startUpstream(answering(ok('echo')));
  const bearer = new FakeBearer({ obtain: async () => SECOND });
  const sidecar = await startSidecar({ upstream, bearer });

  await sidecar.exchange(`${method} / HTTP/1.1\r\nHost: app.test\r\nAuthorization: Bearer own\r\n\r\n`);
  bearer.held = undefined;
  await sidecar.exchange(`${method} / HTTP/1.1\r\nHost: app.test\r\n\r\n`);

  expect(upstream.text).not.toContain('wire-token');
  if (method === 'TRACE') expect([upstream.requests.length, bearer.obtained]).toEqual([2, 0]);
});
