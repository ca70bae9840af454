import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { answer, ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { callers, startGateway } from './running-gateway.ts';

const eve = callers.issue('eve', 'eve.test');
const ann = callers.issue('ann', 'ann.test');
const AT_ONCE = 8;

/** A gateway that exchanges the tokens of requests. The provider answers for those that begin with `bad` once it is let to. */
async function start() {
  const released = Promise.withResolvers<void>();
  const provider = await ScriptedTokenEndpoint.start((response, request) => {
    const subject = provider.received.at(-1)?.form.get('subject_token') ?? '';
    const granted = {
      access_token: `for-${subject}`,
      token_type: 'Bearer',
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      expires_in: 300,
    };
    const isBad = subject.startsWith('bad');
    const script = isBad
      ? answer(400, JSON.stringify({ error: 'invalid_request' }))
      : answer(200, JSON.stringify(granted));
    void (isBad ? released.promise : Promise.resolve()).then(() => script(response, request));
  });
  const dir = await mkdtemp(join(tmpdir(), 'gateway-exchange-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, 'client_id'), 'gateway');
  await writeFile(join(dir, 'client_secret'), 's3cret');
  const exchanged = {
    name: 'default',
    tokenUrl: provider.url,
    grant: 'token_exchange',
    tokenExchange: { subjectTokenFrom: 'request' },
    dir,
  };
  const gateway = await startGateway({
    callers: [
      { name: 'eve', match: { certificate: 'eve.test' }, allowedRoutes: ['api'] },
      { name: 'ann', match: { certificate: 'ann.test' }, allowedRoutes: ['api'] },
    ],
    file: { credentials: [exchanged] },
  });
  const session = await gateway.http2(eve);
  return {
    provider,
    gateway,
    release: () => released.resolve(),
    subjects: () => provider.received.map(({ form }) => form.get('subject_token')),
    /** A request of eve's. */
    ask(subject: string) {
      const stream = session.request({ ':path': '/api/', authorization: `Bearer ${subject}` });
      stream.on('error', () => {});
      stream.resume().end();
      return stream;
    },
  };
}

it('the cancelled requests of one caller are not exchanged before the requests of others', async () => {
  const { provider, gateway, release, subjects, ask } = await start();
  const streams = Array.from({ length: 50 }, (_, n) => ask(`bad${n}`));
  await provider.requests(AT_ONCE - 1);
  for (const stream of streams) stream.close(8);
  await Promise.all(streams.map((stream) => stream.closed || once(stream, 'close')));
  const asked = gateway.get(ann, '/api/', { headers: { authorization: 'Bearer ann' } });
  await expect
    .poll(() => gateway.metric('gateway_requests_in_flight{caller="eve"}').then((n) => n ?? 0))
    .toBe(0);
  release();
  expect((await asked).status).toBe(200);
  expect(subjects().slice(AT_ONCE - 1)).toEqual(['ann']);
});

it('a caller that fills the exchange queue leaves others their turns and places', async () => {
  const { provider, gateway, release, subjects, ask } = await start();
  const headers = (n: number) => ({ headers: { authorization: `Bearer ann${n}` } });
  for (let n = 0; n < 90; n++) ask(`bad${n}`);
  await provider.requests(AT_ONCE - 1);
  // Nobody but eve has anything under way: there is a place left.
  expect((await gateway.get(ann, '/api/', headers(0))).status).toBe(200);
  const sessions = await Promise.all(Array.from({ length: 3 }, () => gateway.http2(eve)));
  const more = sessions.flatMap((session, s) =>
    Array.from({ length: 80 }, (_, n) => {
      const stream = session.request({ ':path': '/api/', authorization: `Bearer bad-${s}-${n}` });
      stream.on('error', () => {});
      return stream.resume();
    }),
  );
  // The line is full.
  await Promise.race(more.map((stream) => once(stream, 'response')));
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) => gateway.get(ann, '/api/', headers(n))),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200));
  expect(subjects().filter((subject) => subject?.startsWith('bad'))).toHaveLength(AT_ONCE - 1);
  release();
});
