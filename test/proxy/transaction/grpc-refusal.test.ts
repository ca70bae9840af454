import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ERRORS, type ProxyErrorCode, SidecarError } from '../../../src/platform/errors.ts';
import { GRPC_STATUS } from '../../../src/platform/grpc-status.ts';
import { fieldValues } from '../../../src/proxy/http/fields.ts';
import { UpstreamReset } from '../../../src/proxy/streams/contract.ts';
import { localReplyFor } from '../../../src/proxy/transaction/local-reply.ts';
import { TokenUnavailable } from '../../../src/token/bearer-source.ts';
import { call } from './called.ts';

const CODES = Object.keys(ERRORS).filter((code) => 'status' in ERRORS[code as keyof typeof ERRORS]);

const refusal = (code: ProxyErrorCode, message = 'why') =>
  localReplyFor(new SidecarError(code, message), true);
const field = (name: string, { fields }: { fields: readonly string[] }) => fieldValues(fields, name);
const messageOf = (message: string) => field('grpc-message', refusal('internal', message))[0] as string;

describe('an error of the sidecar to a gRPC call', () => {
  it.each(CODES as ProxyErrorCode[])('for %s is an answer of trailers only', (code) => {
    const own = refusal(code);
    expect(own).toMatchObject({ status: 200, body: '', closes: false });
    expect(field('content-type', own)).toEqual(['application/grpc']);
    expect(field('grpc-status', own)).toEqual([String(GRPC_STATUS[ERRORS[code].grpc])]);
    expect(field('grpc-message', own)).toEqual(['why']);
    expect(field('token-sidecar-error', own)).toEqual([code]);
    expect(field('content-length', own)).toEqual([]);
  });

  it.each(CODES as ProxyErrorCode[])('for %s has no status that only a service may use', (code) => {
    const ofServices = ['INVALID_ARGUMENT', 'NOT_FOUND', 'ALREADY_EXISTS', 'FAILED_PRECONDITION', 'ABORTED'];
    const others = ['OUT_OF_RANGE', 'DATA_LOSS', 'OK'];
    expect([...ofServices, ...others]).not.toContain(ERRORS[code].grpc);
    // Whose token is missing is the sidecar: the caller alone is blamed for what it shows of itself.
    const blamed = ['caller_unknown', 'caller_ambiguous'];
    expect(ERRORS[code].grpc === 'UNAUTHENTICATED').toBe(blamed.includes(code));
  });

  it.each<[string, ProxyErrorCode[]]>([
    ['UNAVAILABLE', ['token_unavailable', 'draining', 'upstream_unreachable', 'upstream_tls_error']],
    ['DEADLINE_EXCEEDED', ['upstream_timeout']],
    ['RESOURCE_EXHAUSTED', ['overloaded', 'request_too_large', 'headers_too_large', 'uri_too_long']],
    [
      'PERMISSION_DENIED',
      ['destination_not_allowed', 'authorization_not_allowed', 'placeholder_not_allowed'],
    ],
    ['PERMISSION_DENIED', ['cross_site_request']],
    ['UNIMPLEMENTED', ['route_not_found']],
  ])('has %s for %j', (name, codes) => {
    for (const code of codes) expect(ERRORS[code].grpc).toBe(name);
  });

  it('has the retry time if it is known', () => {
    const pushback = (error: SidecarError<ProxyErrorCode>) =>
      field('grpc-retry-pushback-ms', localReplyFor(error, true));
    expect(pushback(new TokenUnavailable('none', 2500))).toEqual(['3000']);
    expect(pushback(new TokenUnavailable('none', 1e12))).toEqual(['2147483647']);
    expect(pushback(new SidecarError('overloaded', 'x'))).toEqual(['1000']);
    expect(pushback(new SidecarError('draining', 'x'))).toEqual([]);
  });
});

describe('grpc-message', () => {
  it.each([
    ['printable ASCII', 'route "api" ~ 50', 'route "api" ~ 50'],
    ['percent signs', '50%', '50%25'],
    ['lines', 'a\r\nb\t', 'a%0D%0Ab%09'],
    ['other characters, by their octets in UTF-8', 'é\u{1f511}', '%C3%A9%F0%9F%94%91'],
  ])('encodes %s', (_, message, encoded) => {
    expect(messageOf(message)).toBe(encoded);
  });

  it('is cut at a whole character within 1024 octets', () => {
    expect(messageOf('x'.repeat(5000))).toBe('x'.repeat(1024));
    expect(messageOf(`${'x'.repeat(1020)}é`)).toBe('x'.repeat(1020));
    expect(messageOf(`${'x'.repeat(1018)}é`)).toBe(`${'x'.repeat(1018)}%C3%A9`);
  });

  it('is a valid field value that decodes to the beginning of the message', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (message) => {
        const encoded = messageOf(message);
        expect(encoded).toMatch(/^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/);
        expect(encoded.length).toBeLessThanOrEqual(1024);
        expect(message.trim().startsWith(decodeURIComponent(encoded).trim())).toBe(true);
      }),
    );
  });
});

describe('an error has the form that the client understands', () => {
  it.each([
    ['application/grpc', 'grpc'],
    ['application/grpc+proto', 'grpc'],
    ['application/grpc;charset=utf-8', 'grpc'],
    ['Application/GRPC+json', 'grpc'],
    ['application/grpc-web', 'problem'],
    ['application/grpc-web+proto', 'problem'],
    ['application/grpcs', 'problem'],
    ['application/json', 'problem'],
    ['text/plain; x=application/grpc', 'problem'],
  ])('for content type %s: %s', (contentType, kind) => {
    const { app, own } = call({ contentType }, { phase: 'finishing' });
    expect(app.own?.status).toBe(kind === 'grpc' ? 200 : 503);
    expect(own('content-type')).toBe(kind === 'grpc' ? 'application/grpc' : 'application/problem+json');
    expect(own('token-sidecar-error')).toBe('draining');
  });

  it('and is a problem over HTTP/1.1 or with two media types', () => {
    expect(call({ protocol: 'http1' }, { phase: 'finishing' }).app.own?.status).toBe(503);
    const two = ['content-type', 'application/json'];
    expect(call({ fields: two }, { phase: 'finishing' }).app.own?.status).toBe(503);
  });

  it.each([
    ['NO_ERROR', 0, 13],
    ['INTERNAL_ERROR', 2, 13],
    ['REFUSED_STREAM', 7, 14],
    ['CANCEL', 8, 1],
    ['ENHANCE_YOUR_CALM', 11, 8],
    ['INADEQUATE_SECURITY', 12, 7],
    ['an unknown code', 99, 13],
  ])('with the gRPC status of an upstream reset with %s', (_, code, status) => {
    const { own, upstream } = call();
    upstream().fail(new UpstreamReset('upstream up.test reset the request', code), 'lost');
    expect(own('grpc-status')).toBe(String(status));
    expect(own('token-sidecar-error')).toBe('upstream_protocol_error');
  });
});
