/** Tokens that are bound to a key: what apps and upstreams can do to the proofs. */

import { describe, expect, it } from 'vitest';
import { type JudgedProof, ProofJudge } from '../support/proof-judge.ts';
import { BoundBearer } from './bound-bearer.ts';
import { openChannel } from './grpc/channel.ts';
import { sidecarBefore, startService } from './grpc/service.ts';
import { answer, CHUNKED, chunk, get, message, ok, post, request } from './messages.ts';
import { answering, inTurn, type RawUpstream, type Script, startUpstream } from './raw-upstream.ts';
import { forwardTo, type RouteOverrides, type SidecarSettings, startSidecar } from './sidecar.ts';

const NONCE = 'WWW-Authenticate: DPoP error="use_dpop_nonce"';

function wantsNonce(nonce: string): string {
  return answer(401, '', NONCE, `DPoP-Nonce: ${nonce}`);
}

async function start(script: Script = answering(ok()), settings: SidecarSettings = {}) {
  const upstream = await startUpstream(script);
  const bearer = new BoundBearer();
  const sidecar = await startSidecar({
    ...(settings.forwardProxy === undefined ? { upstream } : {}),
    bearers: new Map([['default', bearer]]),
    ...settings,
  });
  return { upstream, sidecar, bearer };
}

/** Judges every request that came. */
function judged(upstream: RawUpstream): JudgedProof[] {
  const judge = new ProofJudge();
  return upstream.requests.map(({ head }) => {
    const path = head.target === '*' ? '/' : head.target.replace(/\?.*/, '');
    const uri = `${upstream.protocol}://${head.value('host')}${path}`;
    return judge.judge({ method: head.method, uri, raw: head.fields.flat() });
  });
}

describe('the proof', () => {
  it.each<[string, 'keep' | 'reject' | 'replace', string[]]>([
    ['a field of its own', 'replace', ['DPoP: its.own']],
    ['one to a route that keeps tokens', 'keep', ['DPoP: its.own']],
    ['one to a route that refuses tokens', 'reject', ['DPoP: its.own']],
    ['several', 'replace', ['dpop: its.own', 'DPOP: its.own', 'DPoP:']],
    ['one named by Connection', 'replace', ['DPoP: its.own', 'Connection: dpop']],
    ['none, but its name in Connection', 'replace', ['Connection: DPoP, authorization, close']],
    ['a token and proof of its own', 'replace', ['Authorization: DPoP its.own', 'DPoP: its.own']],
  ])('of the sidecar stands alone, though the app sends %s', async (_, existingAuthorization, fields) => {
    const { upstream, sidecar } = await start(answering(ok()), { route: { existingAuthorization } });
    await sidecar.exchange(get('/a', ...fields));
    expect(judged(upstream)).toHaveLength(1);
    // A dot: no part of a proof has one within.
    expect(upstream.text).not.toContain('its.own');
  });

  it("is the app's where the app's token is kept", async () => {
    const { upstream, sidecar } = await start(answering(ok()), { route: { existingAuthorization: 'keep' } });
    await sidecar.exchange(get('/a', 'Authorization: DPoP own', 'DPoP: proof'));
    const head = upstream.requests[0]?.head;
    expect([head?.values('authorization'), head?.values('dpop')]).toEqual([['DPoP own'], ['proof']]);
  });

  it('has none beside it in trailers', async () => {
    const { upstream, sidecar } = await start();
    await sidecar.exchange(`${request('POST', '/', [CHUNKED])}${chunk('data')}0\r\nDPoP: own\r\n\r\n`);
    expect((await upstream.requests[0]?.body())?.trailers.fields).toEqual([]);
    expect(judged(upstream)).toHaveLength(1);
  });

  it('does not go with TRACE, which would show it', async () => {
    const { upstream, sidecar } = await start();
    await sidecar.exchange(request('TRACE', '/'));
    expect(upstream.requests[0]?.head.names).not.toContain('dpop');
  });

  it.each<[string, RouteOverrides, string]>([
    ['a query', {}, get('/a?b=/c?d')],
    ['all that a path may hold', {}, get("/-._~!$&'()*+,;=:@/%2F%00%c3%A4//a/;x")],
    ['a stripped prefix', { match: { pathPrefix: '/api' }, stripPrefix: true }, get('/api/x')],
    ['a base path', { upstream: { basePath: '/base' } }, get('/x')],
    ['the server as a whole', {}, request('OPTIONS', '*')],
    ['a method of its own', {}, request('m-SEARCH', '/x')],
  ])('names the URL that the upstream sees: %s', async (_, route, bytes) => {
    const { upstream, sidecar } = await start(answering(ok()), { route });
    expect((await sidecar.exchange(bytes)).status).toBe(200);
    expect(judged(upstream)).toHaveLength(1);
  });

  it('names that URL behind a forward proxy', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({
      forwardProxy: forwardTo(upstream),
      bearers: new Map([['default', new BoundBearer()]]),
    });
    const line = `GET http://${upstream.authority}?x HTTP/1.1`;
    await sidecar.exchange(message(line, [`Host: ${upstream.authority}`]));
    expect(judged(upstream)).toHaveLength(1);
  });

  it('is another one on another connection', async () => {
    const die: Script = (arrived) => arrived.connection.destroy();
    const { upstream, sidecar } = await start(inTurn(answering(ok()), die, answering(ok())));
    const client = await sidecar.connect();
    await client.send(get('/')).response();
    expect((await client.send(get('/')).response()).status).toBe(200);
    expect(judged(upstream)).toHaveLength(3);
  });
});

describe('an upstream that wants its nonce', () => {
  it('and closes the connection after its 401 gets a POST on another one', async () => {
    const { upstream, sidecar } = await start(
      inTurn(
        (arrived) => {
          arrived.answer(wantsNonce('n1'));
          arrived.connection.end();
        },
        answering(ok('done')),
      ),
    );
    expect(await sidecar.exchange(post('/', 'body'))).toMatchObject({ status: 200, body: 'done' });
    expect(judged(upstream).map(({ nonce }) => nonce)).toEqual([undefined, 'n1']);
  });

  it('for ever, gets a request twice and no token is renewed', async () => {
    let number = 0;
    const { upstream, sidecar, bearer } = await start((arrived) =>
      arrived.answer(wantsNonce(`n${number++}`)),
    );
    for (const count of [2, 4, 6]) {
      expect((await sidecar.exchange(get('/'))).status).toBe(401);
      expect(judged(upstream)).toHaveLength(count);
    }
    expect(bearer.refused).toEqual([]);
  });

  it('and refuses the token as well, in either order, gets a request three times', async () => {
    const refused = answer(401, '', 'WWW-Authenticate: DPoP error="invalid_token"');
    for (const order of [
      [wantsNonce('n1'), refused],
      [refused, wantsNonce('n1')],
    ]) {
      const [first = '', second = ''] = order;
      const { upstream, sidecar, bearer } = await start(
        inTurn(answering(first), answering(second), answering(ok('done'))),
      );
      expect((await sidecar.exchange(get('/'))).body).toBe('done');
      expect(judged(upstream).at(-1)).toMatchObject({ nonce: 'n1', token: 'wire-token-1' });
      expect(bearer.refused).toHaveLength(1);
    }
  });

  it('after another token was sent, and takes no proof, is a failed replay', async () => {
    const refused = answer(401, '', 'WWW-Authenticate: DPoP error="invalid_token"');
    const invalid = answer(401, '', 'WWW-Authenticate: DPoP error="invalid_dpop_proof"');
    const { sidecar } = await start(inTurn(answering(refused), answering(invalid)));
    expect((await sidecar.exchange(get('/'))).status).toBe(401);
    expect(await sidecar.metric('proxy_replays_total', { result: 'failure' })).toBe(1);
    expect(await sidecar.metric('proxy_replays_total', { result: 'success' })).toBe(0);
  });

  it('by UNAUTHENTICATED of a gateway gets a gRPC call again, and no token is renewed', async () => {
    const refusal = { 'grpc-status': '16', 'www-authenticate': NONCE.slice(18), 'dpop-nonce': 'n1' };
    const service = await startService(async (call) => {
      if (service.calls.length === 1) {
        call.stream.respond(
          { ':status': 200, 'content-type': 'application/grpc', ...refusal },
          { endStream: true },
        );
      } else call.begin().finish(0);
    });
    const bearer = new BoundBearer();
    const sidecar = await sidecarBefore(service, { bearers: new Map([['default', bearer]]) });
    const outcome = await (await openChannel(sidecar)).unary('one', { dpop: 'own' });
    expect(outcome.trailers['grpc-status']).toBe('0');
    const judge = new ProofJudge();
    const [first, second] = service.calls.map(({ metadata, raw }) => {
      const uri = `${metadata[':scheme']}://${metadata[':authority']}${metadata[':path']}`;
      return judge.judge({ method: 'POST', uri, raw });
    });
    expect([first?.nonce, second?.nonce, bearer.refused]).toEqual([undefined, 'n1', []]);
  });
});
