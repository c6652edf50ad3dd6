//! Jobs over real parts: the embedded store, queues in memory, the scripted model, virtual time.
