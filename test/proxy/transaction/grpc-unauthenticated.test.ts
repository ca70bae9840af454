import { describe, expect, it } from 'vitest';
import { SidecarError } from '../../../src/platform/errors.ts';
import { settle } from '../../support/manual-clock.ts';
import { FIRST, renewable } from '../../wire/fake-bearer.ts';
import { type Asked, call } from './called.ts';
import type { Ports } from './ported-transaction.ts';

const GRPC = ['content-type', 'application/grpc'];
const UNAUTHENTICATED = [...GRPC, 'grpc-status', '16', 'grpc-message', 'no'];
const REFUSING_TRAILERS = ['grpc-status', '16'];

const renewing = (asked: Asked = {}, ports: Ports = {}) => {
  const called = call(asked, { bearer: renewable(), ...ports });
  return {
    ...called,
    unauthorized: () => called.metric('upstream_unauthorized_total{route="api"}'),
    replays: async () => ({
      success: await called.metric('replays_total{route="api",result="success"}'),
      failure: await called.metric('replays_total{route="api",result="failure"}'),
    }),
  };
};

describe('a gRPC answer of trailers only with UNAUTHENTICATED', () => {
  it('to the replay is passed on as a failure, and neither token is accepted', async () => {
    const { app, bearer, upstream, unauthorized, replays } = renewing();
    upstream().answer(UNAUTHENTICATED);
    await settle();
    upstream(1).answer(UNAUTHENTICATED);
    await settle();
    expect(app.head?.fields).toEqual(UNAUTHENTICATED);
    expect(app.trailers).toEqual([]);
    expect([bearer.refused, bearer.accepts]).toEqual([[FIRST], []]);
    expect(await unauthorized()).toBe(2);
    expect(await replays()).toEqual({ success: 0, failure: 1 });
  });

  it('is replayed with all messages while the call still sends', async () => {
    const { app, send, upstream } = renewing({ body: 'one', open: true });
    upstream().answer(UNAUTHENTICATED);
    expect(app.held).toBe(true);
    await settle();
    expect(app.held).toBe(false);
    expect(upstream(1)).toMatchObject({ sent: 'one', ended: false });
    send('two', true);
    expect(upstream(1)).toMatchObject({ sent: 'onetwo', ended: true });
    expect(upstream()).toMatchObject({ sent: 'one', ended: false });
  });

  it.each<[string, Asked, Ports, number]>([
    ['the route says so', {}, { route: { retryOn401: false } }, 1],
    [
      'the app has its own Authorization',
      { fields: ['authorization', 'Basic x'] },
      { route: { existingAuthorization: 'keep' } },
      0,
    ],
  ])('is passed on at once if %s', async (_, asked, ports, counted) => {
    const { app, bearer, upstream, unauthorized } = renewing(asked, ports);
    upstream().answer(UNAUTHENTICATED);
    expect(app.head?.fields).toEqual(UNAUTHENTICATED);
    expect([bearer.refused, bearer.accepts]).toEqual([[], []]);
    expect(await unauthorized()).toBe(counted);
  });

  it.each<[string, Asked, string[], number]>([
    ['is no gRPC call', { contentType: 'application/json' }, UNAUTHENTICATED, 200],
    ['came by HTTP/1.1', { protocol: 'http1' }, UNAUTHENTICATED, 200],
    ['is not answered by gRPC', {}, ['content-type', 'text/html', 'grpc-status', '16'], 200],
    ['is answered with another status', {}, UNAUTHENTICATED, 503],
    ['is told two things', {}, [...UNAUTHENTICATED, 'grpc-status', '0'], 200],
    ['is told no number', {}, [...GRPC, 'grpc-status', '016'], 200],
  ])('is not special if the request %s', async (_, asked, fields, status) => {
    const { app, bearer, upstream, unauthorized } = renewing(asked);
    upstream().answer(fields, { status });
    expect(app.head?.fields).toEqual(fields);
    expect(bearer.refused).toEqual([]);
    expect(await unauthorized()).toBe(0);
  });
});

describe('gRPC trailers with UNAUTHENTICATED after messages', () => {
  it('of a replay count as a failure and renew nothing', async () => {
    const { bearer, upstream, unauthorized, replays } = renewing();
    upstream().answer(UNAUTHENTICATED);
    await settle();
    upstream(1).answer(GRPC, { body: '', trailers: REFUSING_TRAILERS });
    expect(bearer.refused).toEqual([FIRST]);
    expect(await unauthorized()).toBe(2);
    expect(await replays()).toEqual({ success: 0, failure: 1 });
  });

  it('do not renew the token if the route forbids it', async () => {
    const { bearer, upstream, unauthorized } = renewing({}, { route: { retryOn401: false } });
    upstream().answer(GRPC, { body: 'some', trailers: REFUSING_TRAILERS });
    expect(bearer.refused).toEqual([]);
    expect(await unauthorized()).toBe(1);
  });

  it('are not needed to count a replay that was aborted or cut', async () => {
    for (const leave of [true, false]) {
      const { transaction, upstream, replays } = renewing();
      upstream().answer(UNAUTHENTICATED);
      await settle();
      upstream(1).answer(GRPC, { body: 'some' });
      if (leave) transaction.appGone();
      else upstream(1).fail(new SidecarError('upstream_protocol_error', 'broke off'), 'lost');
      expect(await replays()).toEqual({ success: 1, failure: 0 });
    }
  });
});

describe('a token is marked as accepted', () => {
  const accepts = (fields: string[], rest: { status?: number; body?: string; trailers?: string[] }) => {
    const { bearer, upstream } = call();
    upstream().answer(fields, rest);
    return bearer.accepts;
  };

  it.each([
    [0, true],
    [1, false],
    [2, false],
    [3, false],
    [4, false],
    [5, true],
    [6, true],
    [7, true],
    [8, false],
    [9, true],
    [10, true],
    [11, true],
    [12, false],
    [13, false],
    [14, false],
    [15, false],
    [16, false],
    [17, false],
  ])('by a call with status %i: %s', (status, accepted) => {
    const fields = ['grpc-status', String(status)];
    const told = accepted ? [FIRST] : [];
    expect(accepts(GRPC, { body: 'x', trailers: fields })).toEqual(told);
    expect(accepts([...GRPC, ...fields], {})).toEqual(told);
  });

  it('only by the trailers, not by head or messages', () => {
    expect(accepts(GRPC, { body: 'x' })).toEqual([]);
    expect(accepts(GRPC, { body: 'x', trailers: [] })).toEqual([]);
    expect(accepts(GRPC, {})).toEqual([]);
  });

  it('by the HTTP status if the answer is not gRPC', () => {
    expect(accepts(['content-type', 'text/html'], { status: 404 })).toEqual([FIRST]);
    expect(accepts(['content-type', 'text/html'], { status: 503 })).toEqual([]);
  });
});
