import { describe, expect, it } from 'vitest';
import { SidecarError } from '../../../src/platform/errors.ts';
import type { Delivery } from '../../../src/proxy/streams/contract.ts';
import { FakeBearer, SECOND } from '../../wire/fake-bearer.ts';
import { call } from './called.ts';

const plain = { contentType: 'text/plain' };
const DELIVERIES: readonly Delivery[] = ['unsent', 'unprocessed', 'unanswered', 'lost'];

describe('an answer that has begun', () => {
  it.each(DELIVERIES)(
    'is cut when its upstream fails, and not continued by another attempt (%s)',
    (delivery) => {
      const { app, upstream, upstreams } = call({ ...plain, protocol: 'http1' });
      upstream().answer([], { body: 'first' });

      upstream().fail(new SidecarError('upstream_protocol_error', 'broke off'), delivery);

      expect(upstreams).toHaveLength(1);
      expect([app.body, app.wasCut]).toEqual(['first', true]);
    },
  );
});

describe('a 401 to a request that meanwhile grew beyond the replay limit', () => {
  it('is passed on because the request cannot be repeated whole', async () => {
    const replaced = Promise.withResolvers<string>();
    const bearer = new FakeBearer({ replace: () => replaced.promise });
    const { app, upstream, upstreams, send } = call(
      { ...plain, body: 'begun', open: true },
      { bearer, limits: { replayBytes: 10 } },
    );
    upstream().answer([], { status: 401, body: 'no', trailers: [] });
    send(' and too much more', false);

    replaced.resolve(SECOND);

    await expect.poll(() => app.head?.status).toBe(401);
    expect(app.body).toBe('no');
    expect(upstreams).toHaveLength(1);
  });
});
