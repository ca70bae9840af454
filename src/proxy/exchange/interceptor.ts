import type { Destination } from '../routing/destination.ts';
import type { RequestService, ServedExchange } from './request-service.ts';

/** What serves a CONNECT to a host whose TLS is to end here. */
export interface Interceptor {
  serve(exchange: ServedExchange, destination: Destination): RequestService;
}
