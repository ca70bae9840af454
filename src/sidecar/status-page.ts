/** The status page, loaded when somebody first opens it. */

import type { AdminEndpoint } from '../admin/admin-server.ts';
import { statusEndpoint, statusPageEndpoint } from './status/page/status-page.ts';
import { readStatus, type StatusSources } from './status/read-status.ts';

export interface StatusPage {
  readonly page: AdminEndpoint;
  readonly report: AdminEndpoint;
}

export function openStatusPage(sources: StatusSources): StatusPage {
  const read = () => readStatus(sources);
  return { page: statusPageEndpoint(read), report: statusEndpoint(read) };
}
