import { describe, expect, it } from 'vitest';
import type { GatewayCaller } from '../../../src/config/config.ts';
import { SidecarError } from '../../../src/platform/errors.ts';
import type { IncomingRequest } from '../../../src/proxy/streams/contract.ts';
import type { Authorizer, IdentifiedCaller } from '../../../src/proxy/transaction/authorizer.ts';
import { settle } from '../../support/manual-clock.ts';
import { FakeBearer, FIRST } from '../../wire/fake-bearer.ts';
import { get, ok, request } from '../../wire/messages.ts';
import { type Ports, serve } from './ported-transaction.ts';

const POLICY: readonly GatewayCaller[] = [
  {
    name: 'shop',
    match: { kind: 'service_account', namespace: 'shop', serviceAccount: 'web' },
    routes: ['api'],
    limits: { inFlight: 10, burst: 1 },
  },
];
const POST = request('POST', '/', ['Content-Length: 5', 'X-Proof: mine']);

/** An authorizer that finds out by `identify`, and a caller of whom all that happens is written down. */
function callersBy(identify: (caller: IdentifiedCaller) => ReturnType<Authorizer['identify']>) {
  const told: string[] = [];
  const policies: unknown[] = [];
  const identified: IncomingRequest[] = [];
  const caller: IdentifiedCaller = {
    name: 'shop/web',
    enter(policy) {
      policies.push(policy);
      told.push('entered');
      return {
        key: 'service_account:shop/web',
        assertMayUse: ({ name }) => void told.push(`uses ${name}`),
        brokeOff: () => void told.push('broke off'),
        leave: () => void told.push('left'),
      };
    },
  };
  const authorizer: Authorizer = {
    withoutCredentials: (asked) => ({
      ...asked,
      fields: asked.fields.filter((text) => !/proof|mine/i.test(text)),
    }),
    identify(asked) {
      identified.push(asked);
      return identify(caller);
    },
  };
  return { authorizer, told, policies, identified };
}

/** A request whose caller is found out when the test says. */
function serveLater(bytes: string, ports: Ports = {}) {
  const verdict = Promise.withResolvers<IdentifiedCaller>();
  let found: IdentifiedCaller | undefined;
  const callers = callersBy((caller) => {
    found = caller;
    return verdict.promise;
  });
  const served = serve(bytes, { authorizer: callers.authorizer, callers: POLICY, ...ports });
  return {
    ...callers,
    ...served,
    async identified() {
      verdict.resolve(found as IdentifiedCaller);
      await settle();
    },
    async turnedAway(error: Error) {
      verdict.reject(error);
      await settle();
    },
  };
}

describe('a caller whose identity is known at once', () => {
  it('is admitted by the policy, and its proof is not forwarded', () => {
    const { authorizer, told, policies, identified } = callersBy((caller) => caller);
    const { app, clock, transaction, upstream } = serve(POST, { authorizer, callers: POLICY });
    expect(identified[0]?.fields).toContain('X-Proof');
    expect(policies).toEqual([POLICY]);
    expect(told).toEqual(['entered', 'uses api']);
    expect(app.held).toBe(false);
    expect(upstream().sent).toContain(`authorization: ${FIRST}`);
    expect(upstream().sent).not.toContain('X-Proof');
    upstream().bring(ok('x'));
    expect(told).toHaveLength(2);
    transaction.settle(clock.monotonicMs());
    transaction.settle(clock.monotonicMs());
    expect(told).toEqual(['entered', 'uses api', 'left']);
  });

  it('that proves no identity is refused', async () => {
    const { authorizer, told } = callersBy(() => {
      throw new SidecarError('caller_unknown', 'nobody said who asks');
    });
    const { app, asked, metric } = serve(get('/'), { authorizer, callers: POLICY });
    expect(app.text).toMatch(/^HTTP\/1\.1 401 /);
    expect([asked, told]).toEqual([[], []]);
    expect(await metric('errors_total{route="none",error="caller_unknown"}')).toBe(1);
  });
});

describe('a caller whose identity has to be requested', () => {
  it('has its body wait until it is known', async () => {
    const { app, asked, transaction, identified, told, upstream } = serveLater(POST);
    expect([app.held, app.text, asked]).toEqual([true, '', []]);
    transaction.onDownstreamDrain();
    await identified();
    expect(told).toEqual(['entered', 'uses api']);
    expect(app.held).toBe(false);
    expect(upstream().sent).toMatch(/^POST \/ HTTP\/1\.1\r\n/);
  });

  it('with a complete request is still read, so that its leaving is noticed', async () => {
    const { app, identified, upstream } = serveLater(get('/'));
    expect(app.held).toBe(false);
    await identified();
    expect(upstream().sent).toMatch(/^GET \/ HTTP\/1\.1\r\n/);
  });

  it('that is refused gets the reason, and nothing is sent upstream', async () => {
    const { app, asked, metric, told, turnedAway } = serveLater(POST);
    await turnedAway(new SidecarError('caller_unverified', 'who asks cannot be verified now'));
    expect(app.text).toMatch(/^HTTP\/1\.1 503 /);
    expect([asked, told]).toEqual([[], []]);
    expect(await metric('errors_total{route="none",error="caller_unverified"}')).toBe(1);
  });

  it.each(['known', 'refused'])('that leaves before it is %s is forgotten', async (how) => {
    const { app, asked, transaction, identified, lines, metric, told, turnedAway } = serveLater(POST);
    transaction.appGone();
    if (how === 'known') await identified();
    else await turnedAway(new TypeError('unforeseen'));
    expect([app.text, app.cutBy, asked, told, lines]).toEqual(['', undefined, [], [], []]);
    expect(app.held).toBe(true);
    expect(await metric('requests_total{route="none",method="POST",code="499"}')).toBe(1);
    expect(await metric('errors_total{route="none",error="internal"}')).toBe(0);
  });

  it('continues waiting if there is no token yet', async () => {
    const token = Promise.withResolvers<string>();
    const bearer = new FakeBearer({ held: undefined, obtain: () => token.promise });
    const { app, identified, upstream } = serveLater(POST, { bearer });
    await identified();
    expect(app.held).toBe(true);
    token.resolve(FIRST);
    await settle();
    expect(app.held).toBe(false);
    expect(upstream().sent).toContain(`authorization: ${FIRST}`);
  });
});
