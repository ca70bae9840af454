/** Upstreams that authenticate a connection, and take whatever follows on it for the same user's (RFC 4559). */

import { describe, expect, it } from 'vitest';
import { expectHttp2Problem } from './http2/problem.ts';
import { connectHttp2 } from './http2/raw-http2-client.ts';
import { HTTP2, startHttp2 } from './http2-upstream/node-upstream.ts';
import { answer, get, message, ok } from './messages.ts';
import { expectProblem } from './problem.ts';
import type { Answer, RawClient } from './raw-client.ts';
import {
  answering,
  inTurn,
  type RawUpstream,
  type Script,
  startUpstream,
  type UpstreamConnection,
} from './raw-upstream.ts';
import { forwardTo, type Sidecar, startSidecar } from './sidecar.ts';

/**
 * Says whose connection it is. `hello` gets a challenge, which is the connection's own; the answer to that, after a user's
 * name, makes the connection that user's.
 */
function knowingUsers(scheme: string): Script {
  const challenges = new Map<UpstreamConnection, string>();
  const users = new Map<UpstreamConnection, string>();
  return async (arrived) => {
    await arrived.body();
    const { connection, head } = arrived;
    const [given, text = ''] = (head.value('authorization') ?? '').split(' ');
    const [user = '', proof] = text.split(':');
    if (given === scheme && text === 'hello') {
      challenges.set(connection, `challenge-${challenges.size}`);
      arrived.answer(answer(401, '', `WWW-Authenticate: ${scheme} ${challenges.get(connection)}`));
      return;
    }
    if (given === scheme && proof === challenges.get(connection)) users.set(connection, user);
    const known = users.get(connection);
    arrived.answer(
      known === undefined ? answer(401, 'who?', `WWW-Authenticate: ${scheme}`) : ok(`${known}'s`),
    );
  };
}

/** A way to such an upstream on which the app's own Authorization passes. */
interface Way {
  readonly sidecar: Sidecar;
  readonly upstream: RawUpstream;
  readonly ask: (...fields: string[]) => string;
}

const WAYS: Readonly<Record<string, (script: Script) => Promise<Way>>> = {
  'by the forward proxy, to a host that is not listed,': async (script) => {
    const upstream = await startUpstream(script, 'plain');
    const forwardProxy = forwardTo(
      { address: { host: 'listed.test', port: 80 } },
      {},
      { otherHosts: 'pass' },
    );
    const { authority } = upstream;
    return {
      sidecar: await startSidecar({ forwardProxy }),
      upstream,
      ask: (...fields) => message(`GET http://${authority}/ HTTP/1.1`, [`Host: ${authority}`, ...fields]),
    };
  },
  'on a route that keeps Authorization': async (script) => {
    const upstream = await startUpstream(script);
    const sidecar = await startSidecar({ upstream, route: { existingAuthorization: 'keep' } });
    return { sidecar, upstream, ask: (...fields) => get('/', ...fields) };
  },
};

/** Has the upstream know a user on the client's connection, by three messages. */
async function authenticate(client: RawClient, { ask }: Way, user: string, scheme = 'NTLM'): Promise<Answer> {
  expect((await client.send(ask()).response()).status).toBe(401);
  const challenged = await client.send(ask(`Authorization: ${scheme} hello`)).response();
  const challenge = challenged.head.value('www-authenticate')?.split(' ')[1];
  return client.send(ask(`Authorization: ${scheme} ${user}:${challenge}`)).response();
}

/** By which connection each request came, as the number of that connection. */
function connectionsOf({ requests, connections }: RawUpstream): number[] {
  return requests.map(({ connection }) => connections.indexOf(connection));
}

describe.each(Object.entries(WAYS))('%s', (_, start) => {
  it.each(['NTLM', 'Negotiate', 'Nego2', 'Kerberos', 'CredSSP'])(
    'a connection authenticated with %s is used only for the app connection that authenticated it',
    async (scheme) => {
      const way = await start(knowingUsers(scheme));
      const [alice, bob, nobody] = [
        await way.sidecar.connect(),
        await way.sidecar.connect(),
        await way.sidecar.connect(),
      ];
      expect((await authenticate(alice, way, 'alice', scheme)).body).toBe("alice's");
      expect((await authenticate(bob, way, 'bob', scheme)).body).toBe("bob's");

      expect((await nobody.send(way.ask()).response()).body).toBe('who?');
      expect((await alice.send(way.ask()).response()).body).toBe("alice's");
      expect((await bob.send(way.ask()).response()).body).toBe("bob's");
      expect(connectionsOf(way.upstream)).toEqual([0, 0, 0, 1, 1, 1, 2, 0, 1]);
    },
  );

  it('an authenticated upstream connection is closed together with the connection of the app', async () => {
    const way = await start(knowingUsers('NTLM'));
    const ends: ((client: RawClient) => void)[] = [
      (client) => client.end(),
      (client) => client.reset(),
      (client) => client.send(way.ask('Connection: close')),
    ];
    for (const [at, end] of ends.entries()) {
      const client = await way.sidecar.connect();
      await authenticate(client, way, 'alice');
      end(client);
      await way.upstream.connections[at]?.closed();
    }
    expect(way.upstream.connections).toHaveLength(ends.length);
  });

  it('a pooled connection belongs to one app connection from the first authentication message on', async () => {
    const way = await start(inTurn(answering(ok('anybody')), knowingUsers('NTLM')));
    expect((await way.sidecar.exchange(way.ask('Connection: close'))).body).toBe('anybody');
    const client = await way.sidecar.connect();
    await client.send(way.ask('Authorization: NTLM hello')).response();

    expect((await way.sidecar.exchange(way.ask())).body).toBe('who?');
    expect(connectionsOf(way.upstream)).toEqual([0, 0, 1]);
  });

  it('an app whose authenticated connection the upstream closed has to authenticate again', async () => {
    const way = await start(knowingUsers('NTLM'));
    const client = await way.sidecar.connect();
    await authenticate(client, way, 'alice');
    const [own] = way.upstream.connections;
    own?.end();
    await own?.closed();

    expect((await client.send(way.ask()).response()).body).toBe('who?');
    expect((await authenticate(client, way, 'alice')).body).toBe("alice's");
  });
});

describe('a challenge for connection-based authentication', () => {
  const whom = async (line: string, status = 401) => {
    const upstream = await startUpstream(answering(answer(status, '', line)));
    const sidecar = await startSidecar({ upstream });
    const [one, other] = [await sidecar.connect(), await sidecar.connect()];
    for (const client of [one, other, one]) await client.send(get('/')).response();
    return connectionsOf(upstream);
  };

  it.each([
    ['WWW-Authenticate: NTLM', 401],
    ['WWW-Authenticate: Negotiate TlRMTVNTUAACAAAA', 401],
    ['WWW-Authenticate: Basic realm="x", nEgO2', 401],
    ['WWW-Authenticate: Bearer\r\nWWW-Authenticate: Negotiate', 401],
    ['WWW-Authenticate: Kerberos', 401],
    ['Proxy-Authenticate: NTLM,Basic realm="x"', 407],
  ])('is recognised in %j and binds the upstream connection to one app connection', async (line, status) => {
    expect(await whom(line, status)).toEqual([0, 1, 0]);
  });

  it.each(['Bearer realm="NTLM"', 'Basic realm="x", negotiate=1', 'Digest nonce="negotiate"', 'Kerberos5'])(
    'is not seen in %j, and the upstream connection stays shared',
    async (value) => {
      expect(await whom(`WWW-Authenticate: ${value}`)).toEqual([0, 0, 0]);
    },
  );
});

describe('connection-based authentication over HTTP/2', () => {
  it('is refused to an app, and nothing is sent upstream', async () => {
    const upstream = await startUpstream(knowingUsers('NTLM'));
    const sidecar = await startSidecar({ upstream, route: { existingAuthorization: 'keep' } });
    const client = await connectHttp2(sidecar);
    const refused = await client.answer(client.get('/', 'authorization', 'Negotiate hello'));
    expectHttp2Problem(refused, 'authorization_needs_http1');
    expect(JSON.parse(refused.body).detail).toContain('NTLM and Negotiate need HTTP/1.1');
    expect(upstream.connections).toEqual([]);
  });

  it('gives the app the challenge, and its next request uses a pooled connection', async () => {
    const upstream = await startUpstream(knowingUsers('NTLM'));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    for (const _ of [1, 2]) expect((await client.answer(client.get('/'))).body).toBe('who?');
    expect(connectionsOf(upstream)).toEqual([0, 0]);
  });

  it('is not offered to an upstream, whose connection serves the next request', async () => {
    const upstream = await startHttp2(({ stream }) => {
      stream.respond({ ':status': 200 });
      stream.end('ok');
    });
    const sidecar = await startSidecar({
      upstream,
      route: { protocol: HTTP2, existingAuthorization: 'keep' },
    });
    expect((await sidecar.exchange(get('/'))).body).toBe('ok');
    const refused = await sidecar.exchange(get('/', 'Authorization: NTLM hello'));
    expectProblem(refused, 'authorization_needs_http1');
    expect(JSON.parse(refused.body).detail).toContain('protocol: http1');
    expect((await sidecar.exchange(get('/', 'Authorization: Basic eDp5'))).body).toBe('ok');
    expect(upstream.arrived.map(({ headers }) => headers.authorization)).not.toContain('NTLM hello');
    expect(upstream.sessions).toHaveLength(1);
  });
});
