/** Spans of grants: what the provider was asked for, and what came of it. Never a token, and nothing of what proves the client. */

import {
  type Attributes,
  type Tracer as OtelTracer,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api';
import { shownUrl } from '../../platform/log/shown-text.ts';
import type { EndedGrantSpan, GrantSpan, GrantTracer } from '../../token/grant-report.ts';

/**
 * Makes spans by way of `tracer`. Each has a trace of its own, since many requests may wait for one grant. It is not named by a method as
 * a single request would be: a grant may take two, where the issuer is asked for its endpoint or a kept connection has ended.
 */
export function grantSpans(tracer: OtelTracer): GrantTracer {
  return {
    begin(credential, reason): GrantSpan {
      const attributes = { 'token_sidecar.credential': credential, 'token_sidecar.grant.reason': reason };
      const span = tracer.startSpan('grant', { kind: SpanKind.CLIENT, attributes }, ROOT_CONTEXT);
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        trace: { traceId, spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 },
        end({ result, where, status }: EndedGrantSpan): void {
          span.setAttribute('token_sidecar.grant.result', result);
          span.setAttributes(addressOf(where));
          if (status !== undefined) {
            span.setAttributes({ 'http.request.method': 'POST', 'http.response.status_code': status });
          }
          if (result !== 'success' && result !== 'given_up') {
            span.setAttribute('error.type', result);
            span.setStatus({ code: SpanStatusCode.ERROR });
          }
          span.end();
        },
      };
    },
  };
}

function addressOf(where: string | undefined): Attributes {
  const url = where === undefined ? null : URL.parse(where);
  if (url === null) return {};
  const { protocol, hostname, port } = url;
  return {
    'server.address': hostname,
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    'url.full': shownUrl(url.href),
    'url.scheme': protocol.slice(0, -1),
  };
}
