/** Loaded on first use. */

import { createHash } from 'node:crypto';
import { type AdminEndpoint, json } from '../../../admin/admin-server.ts';
import { readStatus, type StatusSources } from '../read-status.ts';
import type { StatusReport } from '../report.ts';
import { browserScript } from './browser-script.ts';
import { STYLE, statusDocument } from './document.ts';

/** It connects only to its own listener. */
function policyFor(script: string): string {
  return [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(STYLE)}'`,
    'img-src data:',
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

export function statusEndpoint(read: () => StatusReport): AdminEndpoint {
  return {
    method: 'GET',
    audience: 'people',
    answer: ({ isLocal }) => json(200, shownTo(isLocal, read())),
  };
}

export function statusPageEndpoint(read: () => StatusReport): AdminEndpoint {
  const script = browserScript();
  const policy = policyFor(script);
  return {
    method: 'GET',
    audience: 'people',
    answer: ({ isLocal }) => ({
      status: 200,
      contentType: 'text/html; charset=utf-8',
      body: statusDocument(shownTo(isLocal, read()), { script, mayChange: isLocal }),
      headers: {
        'Content-Security-Policy': policy,
        // A form sends its origin, which is checked.
        'Referrer-Policy': 'same-origin',
        'X-Frame-Options': 'DENY',
      },
    }),
  };
}

/** Other pods don't see a file's errors, which might quote anything. */
function shownTo(isLocal: boolean, report: StatusReport): StatusReport {
  const { configuration } = report;
  if (isLocal || configuration?.state !== 'refused') return report;
  const errors = 'What is wrong is shown to callers on loopback (kubectl port-forward), and in the log.';
  return { ...report, configuration: { ...configuration, errors } };
}

/** A source of a Content Security Policy (CSP Level 3 §2.3.1). */
function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

export interface StatusPage {
  readonly page: AdminEndpoint;
  readonly report: AdminEndpoint;
}

export function openStatusPage(sources: StatusSources): StatusPage {
  const read = () => readStatus(sources);
  return { page: statusPageEndpoint(read), report: statusEndpoint(read) };
}
