/** The thread of this tab. It stands in the address, so that a reload shows it again and a new address is a new chat. */

const fromAddress = location.hash.slice(1);

export const threadId = fromAddress || crypto.randomUUID();

if (!fromAddress) history.replaceState(null, "", `#${threadId}`);
