import { describe, expect, it } from 'vitest';
import { SidecarError } from '../../../src/platform/errors.ts';
import { settle } from '../../support/manual-clock.ts';
import { renewable } from '../../wire/fake-bearer.ts';
import { call } from './called.ts';

const GRPC = ['content-type', 'application/grpc'];

type Called = ReturnType<typeof call>;

describe('a gRPC call is counted once with its status', () => {
  it.each<[string, string, number, (called: Called) => void]>([
    [
      'of its trailers',
      '0',
      200,
      ({ upstream }) => upstream().answer(GRPC, { body: 'x', trailers: ['grpc-status', '0'] }),
    ],
    ['of trailers alone', '5', 200, ({ upstream }) => upstream().answer([...GRPC, 'grpc-status', '5'])],
    [
      'of an unknown status',
      'other',
      200,
      ({ upstream }) => upstream().answer([...GRPC, 'grpc-status', '99']),
    ],
    [
      'of trailers, whatever the head says',
      '7',
      200,
      ({ upstream }) =>
        upstream().answer([...GRPC, 'grpc-status', '0'], { body: '', trailers: ['grpc-status', '7'] }),
    ],
    [
      'of missing trailers',
      'none',
      200,
      ({ upstream }) => upstream().answer(GRPC, { body: 'x', trailers: [] }),
    ],
    [
      'of an answer that is not gRPC’s',
      'none',
      502,
      ({ upstream }) => upstream().answer(['content-type', 'text/html'], { status: 502 }),
    ],
    ['of a call that the app abandoned', 'none', 499, ({ transaction }) => transaction.appGone()],
    [
      'of an answer that was cut',
      'none',
      200,
      ({ upstream }) => {
        upstream().answer(GRPC, { body: 'x' });
        upstream().fail(new SidecarError('upstream_protocol_error', 'broke off'), 'lost');
      },
    ],
    [
      'of an error of the sidecar',
      '14',
      200,
      ({ upstream }) => upstream().fail(new SidecarError('upstream_unreachable', 'nobody'), 'lost'),
    ],
  ])('%s: %s with HTTP status %i', async (_, grpcStatus, status, happen) => {
    const called = call();
    happen(called);
    called.settle();
    called.settle();
    expect(await called.metric(`grpc_calls_total{route="api",grpc_status="${grpcStatus}"}`)).toBe(1);
    expect(await called.metric(`requests_total{route="api",method="POST",code="${status}"}`)).toBe(1);
  });

  it('when it was refused before its route was known', async () => {
    const { metric, settle: end } = call({}, { phase: 'finishing' });
    end();
    expect(await metric('grpc_calls_total{route="none",grpc_status="14"}')).toBe(1);
    expect(
      await metric('requests_by_protocol_total{route="none",protocol="h2",upstream_protocol="none"}'),
    ).toBe(1);
  });

  it('when it was replayed', async () => {
    const { upstream, metric, settle: end } = call({}, { bearer: renewable() });
    upstream().answer([...GRPC, 'grpc-status', '16']);
    await settle();
    upstream(1).answer(GRPC, { body: 'x', trailers: ['grpc-status', '0'] });
    end();
    expect(await metric('grpc_calls_total{route="api",grpc_status="16"}')).toBe(0);
    expect(await metric('grpc_calls_total{route="api",grpc_status="0"}')).toBe(1);
    expect(await metric('requests_by_protocol_total{route="api",protocol="h2",upstream_protocol="h2"}')).toBe(
      1,
    );
  });
});

it.each([
  ['another HTTP/2 request', { contentType: 'application/json' }],
  ['a request by HTTP/1.1', { protocol: 'http1' }],
] as const)('%s is not counted as a gRPC call', async (_, asked) => {
  const { upstream, metric, settle: end } = call(asked);
  upstream().answer(GRPC, { body: 'x', trailers: ['grpc-status', '0'] });
  end();
  expect(await metric('grpc_calls_total{route="api",grpc_status="0"}')).toBe(0);
});
