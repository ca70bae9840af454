import { expect, it } from 'vitest';
import { createTokenEndpoint } from '../../src/broker/token-endpoint.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import { captureLog } from '../support/log-capture.ts';
import { formOf } from './running-broker.ts';

type TokenEndpointOptions = Parameters<typeof createTokenEndpoint>[0];

const ADDRESS = { kind: 'address', profile: 'payments', credential: 'payments' } as const;
const CALLER = { kind: 'service_account', namespace: 'shop', serviceAccount: 'web' } as const;
const ACCEPTED = { kind: 'accepted', caller: CALLER } as const;
const FROM = '10.0.0.1';
const GIVEN = { kind: 'given', token: 'of-the-provider', expiresInSeconds: 200 } as const;

function ask(options: {
  readonly verify?: TokenEndpointOptions['verify'];
  readonly grant?: TokenEndpointOptions['grants']['answer'];
  readonly find?: TokenEndpointOptions['credentials']['find'];
  readonly unread?: string;
}) {
  const { log, lines } = captureLog();
  const endpoint = createTokenEndpoint({
    verify: options.verify ?? (() => ACCEPTED),
    credentials: {
      unread: () => options.unread,
      find: options.find ?? (() => ({ config: {} }) as never),
      now: () => undefined,
    },
    grants: { answer: options.grant ?? (() => GIVEN), size: 0, close: () => Promise.resolve() },
    clock: systemClock,
    log,
  });
  const answer = endpoint(ADDRESS, Buffer.from(formOf('a.b.c')), systemClock.monotonicMs(), FROM);
  return { answer, lines: () => lines.map((line) => JSON.parse(line) as object) };
}

it('a known caller gets a held token in the same turn, and one log line is written', () => {
  const { answer, lines } = ask({});
  expect(answer).toEqual(GIVEN);
  expect(lines()).toMatchObject([{ msg: 'token given', serviceAccount: 'web', expiresIn: 200 }]);
});

it('a caller that must be refused is refused in the same turn', () => {
  const { answer, lines } = ask({ verify: () => ({ kind: 'refused', reason: 'revoked', caller: CALLER }) });
  expect(answer).toMatchObject({ code: 'invalid_client' });
  expect(lines()).toMatchObject([{ msg: 'token not given', serviceAccount: 'web', reason: 'revoked' }]);
});

it('while profiles are being read, no caller is told that it has none, which a sidecar would believe for minutes', () => {
  const { answer, lines } = ask({ unread: 'they are being read', find: () => undefined });
  expect(answer).toMatchObject({ code: 'temporarily_unavailable', retryAfterMs: 1000 });
  expect(lines()).toMatchObject([{ msg: 'token not given', serviceAccount: 'web' }]);
});

it('an internal error is answered, and its log line names the caller if it is known', () => {
  const broken = (): never => {
    throw new Error('no directory');
  };
  const early = ask({ verify: broken });
  expect(early.answer).toMatchObject({ code: 'server_error' });
  expect(early.lines()).toMatchObject([{ msg: 'a request failed' }, { result: 'server_error' }]);
  const late = ask({ grant: broken });
  expect(late.answer).toMatchObject({ code: 'server_error' });
  expect(late.lines()).toMatchObject([
    { msg: 'a request failed' },
    { result: 'server_error', serviceAccount: 'web' },
  ]);
});

it('a right that is withdrawn during the grant gives no token', async () => {
  let isTheirs = true;
  const { promise, resolve } = Promise.withResolvers<typeof GIVEN>();
  const { answer } = ask({
    grant: () => promise,
    find: () => (isTheirs ? ({ config: {} } as never) : undefined),
  });
  expect(answer).toBeInstanceOf(Promise);
  isTheirs = false;
  resolve(GIVEN);
  expect(await answer).toMatchObject({ code: 'unauthorized_client' });
});
