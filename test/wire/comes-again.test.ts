import { expect, it } from 'vitest';
import { FakeBearer, FIRST, SECOND } from './fake-bearer.ts';
import { answer, get, ok, request } from './messages.ts';
import { answering, inTurn, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

it('a repeated request carries the current token, not the one of its first time', async () => {
  const bearer = new FakeBearer();
  const upstream = await startUpstream(answering(ok('done')));
  const sidecar = await startSidecar({ upstream, bearer });
  const client = await sidecar.connect();
  const tokens = [FIRST, FIRST, FIRST, SECOND, SECOND, SECOND, FIRST, FIRST];

  for (const [index, token] of tokens.entries()) {
    bearer.held = token;
    expect((await client.send(get(`/${index}`, 'X-Same: yes')).response()).body).toBe('done');
  }

  expect(upstream.requests.map(({ head }) => head.values('authorization'))).toEqual(
    tokens.map((token) => [token]),
  );
  expect(upstream.requests.map(({ head }) => head.startLine)).toEqual(
    tokens.map((_, index) => `GET /${index} HTTP/1.1`),
  );
});

it('an answer that repeats an earlier one closes the connection only if its own request asks for it', async () => {
  const upstream = await startUpstream(answering(ok('done', 'X-Same: yes')));
  const sidecar = await startSidecar({ upstream });
  const client = await sidecar.connect();
  for (let round = 0; round < 3; round++) {
    const kept = await client.send(get('/')).response();
    expect(kept.head.values('connection')).toEqual([]);
    expect(kept.head.values('x-same')).toEqual(['yes']);
  }
  const last = await client.send(get('/', 'Connection: close')).response();
  expect(last.head.values('connection')).toEqual(['close']);
});

it('answers with equal fields but different status codes are not mixed up', async () => {
  const codes = [200, 404, 200, 500, 200, 204, 200, 404, 404];
  const [first, ...others] = codes.map((code) => answering(answer(code, '', 'X-Same: yes')));
  const upstream = await startUpstream(inTurn(first ?? answering(''), ...others));
  const sidecar = await startSidecar({ upstream });
  const client = await sidecar.connect();
  for (const code of codes) expect((await client.send(get('/')).response()).status).toBe(code);
});

it('Max-Forwards is decremented in each of several equal requests', async () => {
  const upstream = await startUpstream(answering(ok('forwarded')));
  const sidecar = await startSidecar({ upstream });
  const client = await sidecar.connect();
  for (let round = 0; round < 4; round++) {
    await client.send(request('OPTIONS', '/', ['Max-Forwards: 3'])).response();
  }
  expect(upstream.requests.map(({ head }) => head.value('max-forwards'))).toEqual(['2', '2', '2', '2']);
});
